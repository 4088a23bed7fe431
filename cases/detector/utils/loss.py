"""Losses: anchor ratios alone (ComputeLoss), or SimOTA on top of them (ComputeLossOTA)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from utils.general import bbox_ciou, box_iou, xywh2xyxy


HYP = {'box': 0.05, 'cls': 0.5, 'obj': 1.0, 'anchor_t': 4.0}  # as in data/hyp.scratch.tiny.yaml


def decode(pred, anchors):
    """Center (relative to the cell) and size of predictions, in grid units."""
    xy = pred[:, :2].sigmoid() * 2.0 - 0.5
    wh = (pred[:, 2:4].sigmoid() * 2) ** 2 * anchors
    return torch.cat((xy, wh), 1)


class ComputeLoss:
    def __init__(self, model, hyp=HYP):
        det = model.model[-1]
        self.hyp, self.nc, self.na, self.nl = hyp, det.nc, det.na, det.nl
        self.anchors, self.stride = det.anchors, det.stride.tolist()
        self.balance = [4.0, 1.0, 0.4]  # P3, P4, P5
        self.bce = nn.BCEWithLogitsLoss()

    def __call__(self, p, targets):
        p = [pi.float() for pi in p]
        lbox = lobj = lcls = torch.zeros((), device=targets.device)
        for i, (indices, matched, anchors) in enumerate(self.build_targets(p, targets)):
            b, a, gj, gi = indices
            pi = p[i]
            tobj = torch.zeros_like(pi[..., 0])
            if len(matched):
                ps = pi[b, a, gj, gi]
                gain = torch.tensor(pi.shape[2:4], device=pi.device).flip(0).repeat(2)
                tbox = matched[:, 2:6] * gain
                tbox[:, :2] -= torch.stack((gi, gj), 1)
                iou = bbox_ciou(decode(ps, anchors), tbox)
                lbox = lbox + (1.0 - iou).mean()
                tobj[b, a, gj, gi] = iou.detach().clamp(0)
                tcls = F.one_hot(matched[:, 1].long(), self.nc).float()
                lcls = lcls + self.bce(ps[:, 5:], tcls)
            lobj = lobj + self.bce(pi[..., 4], tobj) * self.balance[i]
        lbox, lobj, lcls = lbox * self.hyp['box'], lobj * self.hyp['obj'], lcls * self.hyp['cls'] * self.nc / 80
        loss = lbox + lobj + lcls
        return loss * p[0].shape[0], torch.stack((lbox, lobj, lcls, loss)).detach()

    def build_targets(self, p, targets):
        return self.find_3_positive(p, targets)

    def find_3_positive(self, p, targets):
        """Per layer: cells and anchors that may predict each target, the target's row, the anchor's size.

        An anchor fits if its sides are within anchor_t of the target's; the cell of the center and its two nearest
        neighbours predict it.
        """
        out = []
        nt = len(targets)
        ai = torch.arange(self.na, device=targets.device).repeat_interleave(nt)
        rows = targets.repeat(self.na, 1)
        off = torch.tensor([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1]], device=targets.device) * 0.5
        for i, pi in enumerate(p):
            ny, nx = pi.shape[2:4]
            size = torch.tensor([nx, ny], device=targets.device)
            r = rows[:, 4:6] * size / self.anchors[i][ai]
            fits = torch.max(r, 1 / r).amax(1) < self.hyp['anchor_t']
            t, a = rows[fits], ai[fits]
            gxy = t[:, 2:4] * size
            gxi = size - gxy  # from the other side
            left, up = ((gxy % 1 < 0.5) & (gxy > 1)).T
            right, down = ((gxi % 1 < 0.5) & (gxi > 1)).T
            near = torch.stack((torch.ones_like(left), left, up, right, down))
            t, a = t.repeat(5, 1, 1)[near], a.repeat(5, 1)[near]
            gij = (gxy.repeat(5, 1, 1) - off[:, None])[near].long()
            gi, gj = gij[:, 0].clamp(0, nx - 1), gij[:, 1].clamp(0, ny - 1)
            out.append(((t[:, 0].long(), a, gj, gi), t, self.anchors[i][a]))
        return out


class ComputeLossOTA(ComputeLoss):
    """Of the candidates of each target, SimOTA keeps the dynamic k that cost least."""

    @torch.no_grad()
    def build_targets(self, p, targets):
        candidates = self.find_3_positive(p, targets)
        size = p[0].shape[3] * self.stride[0]  # of the images
        kept = [[] for _ in range(self.nl)]  # per layer, per image: which candidates
        matched = [[] for _ in range(self.nl)]  # and the target of each
        for batch_idx in range(p[0].shape[0]):
            this_target = targets[targets[:, 0] == batch_idx]
            if this_target.shape[0] == 0:
                continue

            # predictions of this image that are candidates, of all layers
            which, layer, pxyxys, p_cls, p_obj = [], [], [], [], []
            for i, pi in enumerate(p):
                (b, a, gj, gi), _, anchors = candidates[i]
                idx = (b == batch_idx).nonzero()[:, 0]
                fg_pred = pi[batch_idx, a[idx], gj[idx], gi[idx]]
                pbox = decode(fg_pred, anchors[idx])
                pbox[:, :2] += torch.stack((gi[idx], gj[idx]), 1)
                which.append(idx)
                layer.append(torch.full_like(idx, i))
                pxyxys.append(xywh2xyxy(pbox * self.stride[i]))
                p_obj.append(fg_pred[:, 4:5])
                p_cls.append(fg_pred[:, 5:])
            which, layer, pxyxys = torch.cat(which), torch.cat(layer), torch.cat(pxyxys)
            p_obj, p_cls = torch.cat(p_obj), torch.cat(p_cls)
            num_gt, num_pred = this_target.shape[0], which.shape[0]
            if num_pred == 0:
                continue

            # cost of giving a prediction (column) to a target (row)
            txyxy = xywh2xyxy(this_target[:, 2:6] * size)
            pair_wise_iou = box_iou(txyxy, pxyxys)
            pair_wise_iou_loss = -torch.log(pair_wise_iou + 1e-8)
            gt_cls = F.one_hot(this_target[:, 1].long(), self.nc).float().unsqueeze(1).repeat(1, num_pred, 1)
            y = (p_cls.sigmoid() * p_obj.sigmoid()).sqrt().unsqueeze(0).repeat(num_gt, 1, 1)
            pair_wise_cls_loss = F.binary_cross_entropy_with_logits(torch.logit(y, 1e-6), gt_cls, reduction='none')
            cost = pair_wise_cls_loss.sum(-1) + 3.0 * pair_wise_iou_loss

            # each target takes its cheapest k predictions, k from the IoUs it has
            top_k, _ = torch.topk(pair_wise_iou, min(10, num_pred), dim=1)
            dynamic_ks = torch.clamp(top_k.sum(1).int(), min=1)
            matching_matrix = torch.zeros_like(cost)
            for gt_idx in range(num_gt):
                _, pos_idx = torch.topk(cost[gt_idx], k=dynamic_ks[gt_idx].item(), largest=False)
                matching_matrix[gt_idx][pos_idx] = 1.0

            # a prediction that several targets want goes to the cheapest
            several = matching_matrix.sum(0) > 1
            if several.any():
                cheapest = cost[:, several].argmin(0)
                matching_matrix[:, several] = 0.0
                matching_matrix[cheapest, several] = 1.0
            fg_mask = matching_matrix.sum(0) > 0
            gt_inds = matching_matrix[:, fg_mask].argmax(0)
            for i in range(self.nl):
                of_layer = layer[fg_mask] == i
                kept[i].append(which[fg_mask][of_layer])
                matched[i].append(this_target[gt_inds[of_layer]])

        out = []
        for i, (indices, rows, anchors) in enumerate(candidates):
            keep = torch.cat(kept[i]) if kept[i] else indices[0][:0]
            rows = torch.cat(matched[i]) if matched[i] else rows[:0]
            out.append((tuple(x[keep] for x in indices), rows, anchors[keep]))
        return out
