from config import cfg

net = cfg.NET
if net in ["wide", "deep"]:
    from wide import Trainer
elif net in ["dense"]:
    from dense import Trainer

Trainer().train()
if __name__ == "__main__":
    pass
