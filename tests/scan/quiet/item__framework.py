"""Another framework's program: what its tensors cost is not known here."""

import paddle

model = paddle.nn.Linear(4, 1)
device = paddle.set_device("gpu")
optimizer = paddle.optimizer.SGD(0.1, parameters=model.parameters())
for step in range(20):
    loss = model(paddle.randn([8, 4])).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    total = loss.item()
