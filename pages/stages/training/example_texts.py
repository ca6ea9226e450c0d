"""Texts to begin with, long out of copyright: poems of the Tang dynasty, and the opening of a novel of 1865."""

EXAMPLE_TEXTS = {
    "zh": (
        "床前明月光，疑是地上霜。举头望明月，低头思故乡。\n"
        "春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。\n"
        "白日依山尽，黄河入海流。欲穷千里目，更上一层楼。\n"
        "千山鸟飞绝，万径人踪灭。孤舟蓑笠翁，独钓寒江雪。\n"
        "红豆生南国，春来发几枝。愿君多采撷，此物最相思。\n"
        "空山不见人，但闻人语响。返景入深林，复照青苔上。\n"
        "锄禾日当午，汗滴禾下土。谁知盘中餐，粒粒皆辛苦。\n"
        "独坐幽篁里，弹琴复长啸。深林人不知，明月来相照。\n"
        "松下问童子，言师采药去。只在此山中，云深不知处。\n"
        "向晚意不适，驱车登古原。夕阳无限好，只是近黄昏。\n"
    ),
    "en": (
        "Alice was beginning to get very tired of sitting by her sister on the bank, and of having nothing to do: "
        "once or twice she had peeped into the book her sister was reading, but it had no pictures or conversations "
        "in it, and what is the use of a book, thought Alice, without pictures or conversation?\n"
        "So she was considering in her own mind (as well as she could, for the hot day made her feel very sleepy and "
        "stupid), whether the pleasure of making a daisy-chain would be worth the trouble of getting up and picking "
        "the daisies, when suddenly a White Rabbit with pink eyes ran close by her.\n"
        "There was nothing so very remarkable in that; nor did Alice think it so very much out of the way to hear the "
        "Rabbit say to itself, Oh dear! Oh dear! I shall be late!\n"
    ),
}
EXAMPLE_PROBES = {"zh": "明月", "en": "Alice was"}
