torchrun --nproc_per_node=8 train.py --launcher pytorch
python train.py
