for set in gtzan; do
    python train.py $set
done
python train.py gtzan
