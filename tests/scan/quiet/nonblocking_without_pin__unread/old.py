train_loader = make_loader(pin_memory=True)
print "a file for Python 2"
