"""The Chinese half of the small world: what is told, and how often.

Words are separated by spaces here and joined without them in the text. See grammar.py for the notation.
"""

from math import exp

from lmcore.corpus.grammar import Scene, cross, distinct, table

# After 今天天气 the next word is one of these five; its probability is the softmax of these logits:
# .697 .155 .070 .052 .026. No other scene contains 今天天气.
WEATHER_LOGITS = {"不错": 3.8, "很": 2.3, "好": 1.5, "差": 1.2, "真": 0.5}

# What each person gives away is a habit of theirs, so that who likes whom decides how the sentence goes on.
PEOPLE = table(
    "name he gift subject",
    "小明 / 他 / 一 朵 花 / 数学",
    "小红 / 她 / 一 本 书 / 英语",
    "小刚 / 他 / 一 个 球 / 数学",
    "小丽 / 她 / 一 张 画 / 音乐",
    "小华 / 他 / 一 把 伞 / 英语",
    "小美 / 她 / 一 顶 帽子 / 音乐",
)
COUPLES = distinct(PEOPLE, "a b")
HOBBY = "[跑步|画画|踢球|唱歌|看书]"
PETS = table(
    "pet called food habit nature",
    "猫 / 咪咪 / 鱼 / [睡觉*2|晒 太阳] / [安静*2|可爱]",
    "狗 / 豆豆 / 肉 / [跑步*2|玩 球] / [聪明*2|可爱]",
)
COLOURS = "[红|白|黑]"

NICE = "适合 [出去 玩*5|散步*3|跑步*2]"
OUTSIDE = "[我们 去 公园 [玩*2|散步]|大家 都 很 高兴|{name} 和 朋友 去 [公园|河 边] 玩]"
INSIDE = "[我们 在 家 [看书*2|休息]|{name} 不 想 出门|大家 都 在 家]"
HOW = {
    "不错": f"不错 ， {NICE} 。 [*2|{OUTSIDE} 。]",
    "很": f"很 [好 ， [{NICE}|{OUTSIDE}]*6|差 ， {INSIDE}*2|热 ， {{name}} 想 喝 水|冷 ， 出门 要 多 穿 衣服] 。",
    "好": f"好 ， {OUTSIDE} 。",
    "差": f"差 ， {INSIDE} 。",
    "真": f"真 [好 ！ [{NICE}|{OUTSIDE}]*7|差 ！ {INSIDE}*2|热 ！ {{name}} 想 喝 水|冷 ！ 我们 在 家 休息] 。",
}
WEATHER_WORDS = [{"how": HOW[word], "weight": str(exp(logit))} for word, logit in WEATHER_LOGITS.items()]
SEASONS = table(
    "season what",
    "春天 / 天气 很 好 ， [公园 里 的 花 都 开 了|鸟 在 树 上 唱歌]",
    "夏天 / 天气 很 热 ， [我们 去 河 里 游泳|{name} 每天 喝 冰 水]",
    "秋天 / 天气 不错 ， [树 上 的 苹果 红 了|{name} 和 爸爸 去 公园 散步]",
    "冬天 / 天气 很 冷 ， [外面 下雪 了|{name} 在 家 喝 热 茶]",
)
DAYS = list("一二三四五六日")
WEEK = [{"before": DAYS[i - 1], "day": DAYS[i], "after": DAYS[(i + 1) % 7]} for i in range(7)]
WEATHER = [
    Scene(14, "今天 天气 {how}", cross(WEATHER_WORDS, PEOPLE)),
    Scene(
        2,
        "昨天 天气 [很 好 ， 我们 去 公园 玩 了 一 天*4|不错 ， {name} 去 河 边 散步*3"
        "|很 差 ， {name} 在 家 看书*2|真 热 ， 我 喝 了 很多 水|真 冷 ， 外面 下雪 了] 。",
        PEOPLE,
    ),
    Scene(
        2,
        "明天 天气 [会 很 好 ， 我们 可以 去 公园 玩*3|不错 ， {name} 想 去 河 边 散步*2"
        "|可能 很 差 ， 我们 在 家 休息] 。",
        PEOPLE,
    ),
    Scene(
        2,
        "天气 预报 说 ， [今天|明天*2] [有 雨 ， 出门 要 带 伞*3"
        "|是 晴天 ， 可以 出去 玩*2|会 下雪 ， 要 多 穿 衣服] 。",
    ),
    Scene(
        2,
        "外面 天气 怎么样 ？ [外面|] 天气 [很 好 ， 可以 去 公园 玩*3|不错 ， 可以 出去 散步*3|很 差 ， 在 下雨*2"
        "|真 热 ， 我 想 喝 水|真 冷 ， 我 想 喝 茶] 。",
    ),
    Scene(1.5, "{season} [到|来] 了 ， {what} 。", cross(SEASONS, PEOPLE)),
    Scene(1.5, "今天 是 星期 {day} ， [明天 是 星期 {after}*2|昨天 是 星期 {before}] 。", WEEK),
    Scene(1.5, "今天 是 {a} 的 生日 ， {b} 送给 {a_he} {b_gift} 。", COUPLES),
    Scene(
        1.5,
        f"今天 {{name}} [很 高兴 ， 想 [去 公园 散步|和 朋友 {HOBBY}]*2|很 累 ， 想 [在 家 休息|早早 睡觉]"
        "|不 想 出门 ， 想 在 家 看书] 。",
        PEOPLE,
    ),
]

LIKES = [
    Scene(
        4,
        "我 喜欢 {pet} [*2|， 因为 {pet} 很 {nature}*3|， 我 家 有 一 只 [白|黑] {pet}*2] 。 "
        "[*2|{pet} 喜欢 [吃 {food}|{habit}] 。]",
        PETS,
    ),
    Scene(
        2,
        "我 喜欢 [苹果 ， 因为 苹果 很 [甜*3|好吃*2]*4|苹果 的 新 手机 ， 可是 它 很 贵|花 ， 因为 花 很 [美*2|香]*2"
        "|看书 ， 我 家 有 很多 书|音乐 ， 我 每天 唱歌] 。",
    ),
    Scene(1.5, "你 喜欢 [猫 还是 狗|狗 还是 猫] ？ 我 喜欢 {pet} ， {pet} 很 {nature} 。", PETS),
    Scene(
        3,
        "{name} 家 有 一 只 [白|黑] {pet} ， 叫 {called} 。 {called} [喜欢 [吃 {food}|{habit}]|很 {nature}] ， "
        "{name} 很 喜欢 它 。",
        cross(PEOPLE, PETS),
    ),
    Scene(
        1,
        "[猫 喜欢 吃 鱼 ， 狗 喜欢 吃 肉*2|狗 喜欢 吃 肉 ， 猫 喜欢 吃 鱼*2"
        "|鸟 会 飞 ， 鱼 会 游泳|狗 会 跑 ， 鸟 会 飞] 。",
    ),
    Scene(7, "{a} 喜欢 {b} ， 所以 {a} 送给 {b} {a_gift} 。 [*2|{b} [很 高兴|说 ： “ 谢谢 你 。 ”]]", COUPLES),
    Scene(3, "{a} 喜欢 {b} ， 可是 {b} 喜欢 {c} 。 [*2|{a} 很 难过 。]", distinct(PEOPLE, "a b c")),
    Scene(
        2, f"{{a}} 喜欢 {{b}} ， {{b}} 也 喜欢 {{a}} 。 {{a}} 和 {{b}} [是 好 朋友|一起 去 公园 {HOBBY}] 。", COUPLES
    ),
    Scene(
        2,
        "{a} 喜欢 {b} ， {c} 喜欢 {d} 。 [谁 喜欢 {b} ？ {a} 喜欢 {b}|谁 喜欢 {d} ？ {c} 喜欢 {d}] 。",
        distinct(PEOPLE, "a b c d"),
    ),
    Scene(3, f"{{name}} [很 喜欢|每天 都] {HOBBY} 。", PEOPLE),
]

APPLE = [
    Scene(
        4,
        "苹果 [很*3|真] [好吃*3|甜*2] ， [我 每天 吃 一 个*2|{name} 吃 了 两 个|妈妈 买 了 [三|五] 个] 。",
        PEOPLE,
    ),
    Scene(
        4,
        "苹果 发布 了 新 [手机 ， [很多 人 都 想 买*2|可是 价格 很 贵]*4"
        "|电脑 ， [{name} 的 爸爸 想 买 一 台*2|可是 价格 很 贵]] 。",
        PEOPLE,
    ),
    Scene(1.5, "苹果 公司 [的 总部 在 美国|的 股票 今天 上涨 了|发布 了 新 手机*2|的 新 电脑 很 贵] 。"),
    Scene(
        2,
        "{shop} 店 里 ， 苹果 {say} 。",
        table(
            "shop say",
            "水果 / [很 便宜|很 甜|又 大 又 红] ， 妈妈 买 了 [三|五] 个",
            "手机 / [很 贵|发布 了 新 手机] ， [很多 人 都 想 买*2|爸爸 买 了 一 部]",
        ),
    ),
    Scene(1, "树 上 ， 苹果 红 了 ， [又 大 又 甜|{name} 想 吃 一 个] 。", PEOPLE),
    Scene(1, "新闻 里 说 ， 苹果 [发布 了 新 [手机|电脑]|公司 的 股票 上涨 了] 。"),
    Scene(
        1.5,
        "{name} 的 [妈妈 去 水果 店 买 苹果 ， 苹果 [又 大 又 红|很 甜]"
        "|爸爸 去 手机 店 买 苹果 ， 苹果 的 新 手机 很 贵] 。",
        PEOPLE,
    ),
]

# Effects are real ones, in an order of frequency of this world's own. 华法林 thins the blood, hence 黑便.
DRUGS = table(
    "weight drug main effect",
    "4 / 华法林 / 黑便 / [黑便 ， 医生 [怀疑 胃 出血*2|让 患者 马上 停药]*7|鼻出血 ， 医生 让 患者 检查 血液*2"
    "|头晕 ， 医生 让 患者 休息]",
    "2 / 阿司匹林 / 胃痛 / [胃痛 ， 医生 建议 饭 后 服用*6|黑便 ， 医生 怀疑 胃 出血*2|头晕 ， 医生 让 患者 休息*2]",
    "2 / 阿莫西林 / 皮疹 / [皮疹 ， 医生 [怀疑 过敏*2|让 患者 马上 停药]*8|腹泻 ， 医生 建议 多 喝 水*2]",
    "2 / 感冒药 / 嗜睡 / [嗜睡 ， 医生 建议 不要 开车*8|头晕 ， 医生 让 患者 休息*2]",
)
MEDICINE = [
    Scene(7, "患者 服用 {drug} [*8|三 天|五 天] 后 出现 {effect} 。", DRUGS),
    Scene(
        2,
        "医生 问 患者 ： “ 你 服用 了 什么 药 ？ ” 患者 说 ： “ {drug} 。 ” 医生 说 ： “ 这 可能 会 引起 {main} 。 ”",
        DRUGS,
    ),
    Scene(2, "患者 出现 {main} ， 可能 是 因为 服用 了 {drug} 。 医生 让 患者 [停药*2|检查 血液] 。", DRUGS),
    Scene(
        1.5,
        "患者 [头痛 ， 医生 建议 多 休息|发烧 ， 医生 建议 多 喝 水|咳嗽 ， 医生 建议 服用 感冒药] 。 "
        "[三|五] 天 后 ， 患者 的 病 好 了 。",
    ),
]

ROYALS = table(
    "who he home work partner unit has",
    "国王 / 他 / 王宫 / 管理 国家 / 女王 / 位 / 戴 着 他 的 王冠",
    "女王 / 她 / 王宫 / 管理 国家 / 国王 / 位 / 戴 着 她 的 王冠",
    "王子 / 他 / 王宫 / 学习 / 公主 / 位 / 骑 着 他 的 白 马",
    "公主 / 她 / 王宫 / 学习 / 王子 / 位 / 骑 着 她 的 白 马",
    "男人 / 他 / 村子 / 工作 / 女人 / 个 / 戴 着 他 的 帽子",
    "女人 / 她 / 村子 / 工作 / 男人 / 个 / 戴 着 她 的 帽子",
    "男孩 / 他 / 村子 / 上学 / 女孩 / 个 / 骑 着 他 的 自行车",
    "女孩 / 她 / 村子 / 上学 / 男孩 / 个 / 骑 着 她 的 自行车",
)
PARENTS = table(
    "father mother son daughter unit home",
    "国王 / 女王 / 王子 / 公主 / 位 / 王宫",
    "男人 / 女人 / 男孩 / 女孩 / 个 / 村子",
)
ROYAL = [
    Scene(
        5,
        "{who} 住 在 {home} 里 ， {he} 每天 [{work}*3|骑 马|唱歌|看书] 。 [*2|{he} 喜欢 一 {unit} {partner} 。]",
        ROYALS,
    ),
    Scene(
        2,
        "从前 ， {home} 里 有 一 {unit} [{father} 和 一 {unit} {mother}|{mother} 和 一 {unit} {father}] 。 "
        "他们 有 一 个 [儿子 ， 大家 都 喜欢 这 {unit} {son}|女儿 ， 大家 都 喜欢 这 {unit} {daughter}] 。",
        PARENTS,
    ),
    Scene(3, "{who} {has} ， [很 高兴|去 公园 散步|去 看 {he} 的 朋友|去 河 边 找 {partner}] 。", ROYALS),
    Scene(1, "[国王 是 男人 ， 女王 是 女人|女王 是 女人 ， 国王 是 男人] 。"),
    Scene(1, "[国王|女王] 的 [儿子 是 王子 ， 女儿 是 公主|女儿 是 公主 ， 儿子 是 王子] 。"),
    Scene(
        1,
        "[王子|男孩] 和 他 的 [爸爸|妈妈|朋友] 在 河 边 散步 ， [公主|女孩] 和 她 的 [爸爸|妈妈|朋友] 在 家 看书 。",
    ),
]

COUNTRIES = table(
    "country capital speak famous",
    "中国 / 北京 / 中文 / 饺子",
    "法国 / 巴黎 / 法语 / 面包",
    "日本 / 东京 / 日语 / 面条",
    "英国 / 伦敦 / 英语 / 茶",
    "德国 / 柏林 / 德语 / 汽车",
)
PLACES = [
    Scene(4, "{country} 的 首都 是 {capital} 。 [*2|{country} 人 说 {speak} 。]", COUNTRIES),
    Scene(3, "{capital} 是 {country} 的 首都 ， [那里 的 {famous} 很 有名*2|那里 的 人 说 {speak}] 。", COUNTRIES),
    Scene(
        1,
        "{capital} 今天 [下雨 了 ， 出门 要 带 伞|下雪 了 ， 要 多 穿 衣服"
        "|很 热 ， 要 多 喝 水|是 晴天 ， 天气 很 好] 。",
        COUNTRIES,
    ),
    Scene(
        3,
        "{name} [住 在|去 过] {capital} ， {he} 会 说 {speak} ， "
        "[也 喜欢 {famous}|因为 {he} 的 [妈妈|爸爸] 是 {country} 人] 。",
        cross(PEOPLE, COUNTRIES),
    ),
    Scene(
        2,
        "{name} 想 去 {country} ， 因为 {he} 喜欢 {famous} 。 {he} 的 老师 说 ： “ {country} 的 首都 是 {capital} 。 ”",
        cross(PEOPLE, COUNTRIES),
    ),
]

NUMBERS = list("一二三四五六七八九十")
AMOUNTS = list("零一两三四五六七八九十")  # the forms used before a measure word: 两 个, not 二 个
RUNS = [{"run": " 、 ".join(NUMBERS[i:j])} for i in range(7) for j in range(i + 4, 11)]
SUMS = [
    {"x": NUMBERS[x - 1], "y": NUMBERS[y - 1], "sum": NUMBERS[x + y - 1]}
    for x in range(1, 10)
    for y in range(1, 11 - x)
]
BUYS = [
    {"x": AMOUNTS[x], "y": AMOUNTS[y], "more": AMOUNTS[x + y], "less": AMOUNTS[x - y]}
    for x in range(2, 7)
    for y in range(1, min(x, 4))
]
COUNTING = [
    Scene(3, "[|我们 数 数 ： ] {run} 。", RUNS),
    Scene(3, "[{x} 加 {y} 等于 {sum}*2|{sum} 减 {y} 等于 {x}] 。", SUMS),
    Scene(
        3,
        "{name} 有 {x} 个 {thing} ， [又 买 了 {y} 个 ， 现在 有 {more} 个|给 了 朋友 {y} 个 ， 还 有 {less} 个] 。",
        cross(PEOPLE, BUYS, table("thing", "苹果", "球")),
    ),
    Scene(2, "老师 问 {name} ： “ {x} 加 {y} 等于 几 ？ ” {name} 说 ： “ {sum} 。 ”", cross(PEOPLE, SUMS[::3])),
]

PARENT = table("parent he", "爸爸 / 他", "妈妈 / 她")
JOBS = table("job where", "医生 / 医院", "老师 / 学校", "工人 / 工厂", "农民 / 村子 里")
SHOPS = table(
    "shop goods",
    "水果 / [三|五] 个 苹果",
    "面包 / [一|两] 个 面包",
    "书 / [一|两] 本 书",
    "花 / [一|三] 朵 花",
    "手机 / 一 部 新 手机",
)
THINGS = table("thing unit", "帽子 / 顶", "自行车 / 辆", "伞 / 把", "球 / 个")
DOING = "[家 [画画|看书|唱歌]*2|公园 [跑步|踢球|唱歌]*2|学校 [踢球|看书|画画]|河 边 [散步|跑步|画画]]"
DAILY = [
    Scene(2, "我 [饿 了 ， 想 吃 [米饭|面条*2|饺子|苹果]|渴 了 ， 想 喝 [水*3|茶|牛奶]|累 了 ， 想 [睡觉*2|休息]] 。"),
    Scene(2, "妈妈 做 了 [饺子|面条|鱼] ， [很*2|真] [好吃*3|香] ， {name} 吃 了 很多 。", PEOPLE),
    Scene(2, "我 {parent} 是 {job} ， {he} 在 {where} 工作 。", cross(PARENT, JOBS)),
    Scene(
        3,
        "{name} 在 学校 学习 {subject} ， {he} 的 {subject} [很 好*3|不错*2|很 差] 。 [*2|老师 很 喜欢 {he} 。]",
        PEOPLE,
    ),
    Scene(
        1.5, "这 本 书 [很 好 ， {name} 看 了 [两|三] 天|不错 ， {name} 也 喜欢|真 好 ， 很多 人 都 喜欢] 。", PEOPLE
    ),
    Scene(3, "{name} 去 {shop} 店 买 了 {goods} ， [送给 妈妈|送给 朋友|很 高兴] 。", cross(PEOPLE, SHOPS)),
    Scene(
        3,
        f"{{name}} 有 一 {{unit}} {COLOURS} {{thing}} ， {{he}} [很 喜欢 这 {{unit}} {{thing}}"
        f"|每天 带 着 {{thing}} 去 学校] 。",
        cross(PEOPLE, THINGS),
    ),
    Scene(
        2,
        "{a} 问 {b} ： “ 你 喜欢 什么 ？ ” {b} 说 ： “ 我 喜欢 {x} ， 你 呢 ？ ” "
        "{a} 说 ： “ 我 [也 喜欢 {x}|喜欢 [猫|狗|音乐]] 。 ”",
        cross(COUPLES, table("x", "跑步", "画画", "踢球", "唱歌", "看书")),
    ),
    Scene(5, f"{{a}} 和 {{b}} 在 {DOING} 。", COUPLES),
    Scene(3, f"{{name}} 在 {DOING} ， {{he}} [很 高兴|很 累|看 到 一 只 [猫|狗|鸟]] 。", PEOPLE),
]

MORNING = "早上 ， {a} 吃 了 [面包*2|鸡蛋|米饭] ， 喝 了 [牛奶*2|茶]"
NOON = "然后 去 学校 学习 {a_subject}"
AFTERNOON = "下午 ， {a_he} 和 {b} 一起 [去 公园 [玩|踢球]|去 河 边 散步|看书|画画]"
EVENING = "晚上 ， {a_he} [很 累 ， 早早 睡觉 了|在 家 看书|吃 了 妈妈 做 的 面条]"
STORIES = [
    Scene(5, f"{MORNING} ， {NOON} 。 {AFTERNOON} 。 [|{EVENING} 。]", COUPLES),
    Scene(
        3,
        "{a} 和 {b} 是 好 朋友 。 [今天|昨天] ， 两 个 人 一起 去 [公园 玩|河 边 散步] ， 看 到 一 只 [白|黑] {pet} 。 "
        "{a} 说 ： “ 这 只 {pet} 真 可爱 。 ” {b} 说 ： “ 我 也 喜欢 {pet} 。 ”",
        cross(COUPLES, PETS),
    ),
    Scene(
        3,
        "{name} 的 {pet} 不 见 了 ， {he} 很 难过 。 {name} 去 [公园|河 边|学校] 找 {called} 。 "
        "后来 ， {name} 在 [树 上|树 下|家 里] 找到 了 {called} ， {he} 很 高兴 。",
        cross(PEOPLE, PETS),
    ),
    Scene(
        2,
        "{name} 病 了 ， 不 能 去 学校 。 [妈妈|爸爸] 带 {he} 去 医院 ， 医生 让 {he} 多 [休息|喝 水] 。 "
        "[三|五] 天 后 ， {name} 好 了 ， 又 去 学校 了 。",
        PEOPLE,
    ),
    Scene(
        3,
        "从前 有 一 {unit} {who} ， {he} 住 在 {home} 里 。 有 一 天 ， {he} 在 河 边 看 到 一 只 [白|黑] {pet} 。 "
        "{who} 给 {pet} 吃 {food} ， 后来 他们 成 了 好 朋友 。",
        cross(ROYALS, PETS),
    ),
]

SCENES = [*WEATHER, *LIKES, *APPLE, *MEDICINE, *ROYAL, *PLACES, *COUNTING, *DAILY, *STORIES]
