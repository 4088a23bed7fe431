"""Train a tiny detector.

python train.py --img-size 320 320 --batch-size 384 --hyp data/hyp.scratch.tiny.yaml --workers 8 --cache-images
"""
import argparse
import json
import math
import time
from pathlib import Path

import torch
import yaml

import make_data
from models.yolo import Model
from utils.datasets import create_dataloader
from utils.general import increment_path, log_scalars, scalar_log
from utils.loss import ComputeLoss, ComputeLossOTA
from utils.plots import plot_images

ROOT = Path(__file__).resolve().parent
WARMUP = {'cpu': 10, 'gpu': 4}  # iterations left out of the timing


def parse_opt():
    with open(ROOT / 'cfg' / 'opt.yaml') as f:
        config = yaml.safe_load(f)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--scale', choices=('cpu', 'gpu'), default='gpu' if torch.cuda.is_available() else 'cpu')
    parser.add_argument('--regime', choices=config['regime'], default='loss', help='see cfg/opt.yaml')
    length = parser.add_mutually_exclusive_group()
    length.add_argument('--steps', type=int, help='iterations')
    length.add_argument('--epochs', type=int, help='times through the images, instead of --steps')
    parser.add_argument('--batch-size', type=int)
    parser.add_argument('--img-size', type=int, nargs='+', metavar='PX', help='of training; a second one is ignored')
    parser.add_argument('--workers', type=int, help='dataloader workers')
    parser.add_argument('--cfg', help='model.yaml')
    parser.add_argument('--hyp', help='hyperparameters')
    parser.add_argument('--cache-images', action='store_true', default=None, help='keep decoded images in RAM')
    parser.add_argument('--fault-free', action='append', default=[], choices=['all', *config['fault_free']],
                        metavar='NAME', help='all, ' + ', '.join(config['fault_free']))
    parser.add_argument('--data', type=Path, help='folder of the images and labels, made if missing; or a data.yaml')
    parser.add_argument('--out', type=Path, help='default: PROJECT/NAME-N')
    parser.add_argument('--project', type=Path, default='runs', help='default: runs')
    parser.add_argument('--name', default='detector', help='default: detector')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--device', default='', help='cpu, or the number of a GPU; ignored where there is none')
    parser.add_argument('--weights', default='', help="'' alone: training starts from scratch")
    parser.add_argument('--noautoanchor', action='store_true', help='ignored: anchors are always those of --cfg')
    args = parser.parse_args()
    if args.weights:
        parser.error(f'--weights {args.weights}: training starts from scratch, no weights are loaded')
    if args.device not in ('', 'cpu') and not args.device.isdecimal():
        parser.error(f'--device {args.device}: cpu, or the number of one GPU')
    if args.img_size:
        args.img_size = args.img_size[0]

    opt = {**config['all'], **config[args.scale], **config['regime'][args.regime][args.scale]}
    for name in config['fault_free'] if 'all' in args.fault_free else args.fault_free:
        opt.update(config['fault_free'][name])
    given = {k: v for k, v in vars(args).items() if v is not None or k not in opt}
    return argparse.Namespace(**{**opt, **given})


def load_hyp(opt):
    with open(ROOT / opt.hyp) as f:
        hyp = yaml.safe_load(f)
    if opt.loss_ota is not None:
        hyp['loss_ota'] = opt.loss_ota
    return hyp


def make_optimizer(model, hyp):
    """SGD; no weight decay for biases and batch norms. Biases are the last group."""
    bias = [p for k, p in model.named_parameters() if k.endswith('bias')]
    norm = [p for k, p in model.named_parameters() if k.endswith('bn.weight')]
    rest = [p for k, p in model.named_parameters() if not k.endswith(('bias', 'bn.weight'))]
    groups = [{'params': norm}, {'params': rest, 'weight_decay': hyp['weight_decay']}, {'params': bias}]
    return torch.optim.SGD(groups, lr=hyp['lr0'], momentum=hyp['momentum'], nesterov=True)


def warmup_lr(optimizer, hyp, ni):
    """Biases fall from warmup_bias_lr to lr0, all others rise from 0."""
    x = min(ni / hyp['warmup_iters'], 1.0)
    for j, group in enumerate(optimizer.param_groups):
        start = hyp['warmup_bias_lr'] if j == 2 else 0.0
        group['lr'] = start + (hyp['lr0'] - start) * x


def now(device):
    if device.type == 'cuda':
        torch.cuda.synchronize()
    return time.perf_counter()


def train(opt, hyp, device, save_dir):
    torch.manual_seed(opt.seed)
    torch.backends.cudnn.benchmark = True
    torch.autograd.set_detect_anomaly(opt.detect_anomaly)
    if opt.threads:
        torch.set_num_threads(opt.threads)

    model = Model(ROOT / opt.cfg, opt.img_size, opt.width_multiple).to(device).train()
    optimizer = make_optimizer(model, hyp)
    scaler = torch.amp.GradScaler(device.type, init_scale=64.0, enabled=opt.amp)  # 65536 overflows: loss is times bs
    dataloader = create_dataloader(opt.data / 'images' / 'train2017', opt.img_size, opt.batch_size, hyp, opt.steps,
                                   seed=opt.seed, workers=opt.workers, cache=opt.cache_images,
                                   pin_memory=opt.pin_memory and device.type == 'cuda')
    compute_loss = ComputeLossOTA(model, hyp) if hyp['loss_ota'] == 1 else ComputeLoss(model, hyp)
    scalars = scalar_log(save_dir / 'scalars.log')

    n = sum(p.numel() for p in model.parameters())
    print(f'{opt.cfg}: {n / 1e6:.2f}M parameters, {device}, image size {opt.img_size}, batch size {opt.batch_size}, '
          f'{dataloader.num_workers} dataloader workers')
    print(('%10s' * 7) % ('iter', 'box', 'obj', 'cls', 'total', 'labels', 'img_size'))

    mloss = torch.zeros(4, device=device)  # mean losses
    losses, warmup = [], min(WARMUP[opt.scale], opt.steps - 1)
    marks = [now(device)]  # of the beginning, of the end of warm-up, of the end
    for ni, (imgs, targets, paths, _) in enumerate(dataloader):
        imgs = imgs.to(device, non_blocking=True).float() / 255.0
        targets = targets.to(device, non_blocking=True)
        warmup_lr(optimizer, hyp, ni)

        # Forward
        with torch.autocast(device.type, enabled=opt.amp):
            pred = model(imgs)
            loss, loss_items = compute_loss(pred, targets)

        # Backward
        scaler.scale(loss).backward()

        # Optimize
        scaler.step(optimizer)
        scaler.update()

        # Print
        mloss = (mloss * ni + loss_items) / (ni + 1)
        losses.append(loss_items[3])
        if ni % opt.items_every == 0:
            items = [x.item() for x in mloss]
            print(('%10s' + '%10.4g' * 6) % (f'{ni}/{opt.steps - 1}', *items, len(targets), imgs.shape[-1]))

        # Plot, log
        if ni % opt.plot_every == 0:
            plot_images(imgs, targets, save_dir / 'train_batch.png', paths)
        if ni % opt.log_every == 0:
            log_scalars(scalars, ni, loss_items, optimizer, model)
        optimizer.zero_grad()

        if ni + 1 in (warmup, opt.steps):
            marks.append(now(device))

    torch.save({'model': model.state_dict(), 'optimizer': optimizer.state_dict()}, save_dir / 'last.pt')
    seconds = (marks[-1] - marks[-2]) / (opt.steps - warmup)
    return {'case': 'detector', 'scale': opt.scale, 'device': str(device), 'steps': opt.steps, 'warmup': warmup,
            'step_seconds': seconds, 'samples_per_second': opt.batch_size / seconds,
            'losses': torch.stack(losses).tolist()}


def select_device(opt):
    if opt.scale != 'gpu' or opt.device == 'cpu' or not torch.cuda.is_available():
        return torch.device('cpu')
    if opt.device:
        torch.cuda.set_device(int(opt.device))
    return torch.device('cuda')


def data_folder(opt):
    folder = opt.data
    if folder and folder.suffix == '.yaml':
        with open(ROOT / folder) as f:
            folder = yaml.safe_load(f)['path']
    return make_data.make(opt.scale, folder or make_data.default_dir(opt.scale))


def main():
    opt = parse_opt()
    device = select_device(opt)
    opt.amp = opt.amp and device.type == 'cuda'
    opt.data = data_folder(opt)
    if opt.epochs:
        opt.steps = math.ceil(opt.epochs * make_data.IMAGES[opt.scale] / opt.batch_size)
    save_dir = opt.out or increment_path(opt.project / opt.name)
    save_dir.mkdir(parents=True, exist_ok=True)
    with open(save_dir / 'opt.yaml', 'w') as f:
        yaml.safe_dump({k: str(v) if isinstance(v, Path) else v for k, v in vars(opt).items()}, f)
    summary = train(opt, load_hyp(opt), device, save_dir)
    with open(save_dir / 'summary.json', 'w') as f:
        json.dump(summary, f, indent=1)
    print('%d iterations, %.1f ms/it, %.1f images/s, results in %s' % (
        opt.steps, summary['step_seconds'] * 1e3, summary['samples_per_second'], save_dir))


if __name__ == '__main__':
    main()
