"""Does an encoder know a language? Sentences and their translations are near each other if it does."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

LEAST_NEARNESS = 0.35
"""Of translations in a language that an encoder knows, see ``measure_nearness``."""
REFERENCE = "en"
PARALLEL = {
    "en": (
        "Where does the old woman live?",
        "The train arrives tomorrow morning.",
        "Water boils at a high temperature.",
        "He lost his money in the war.",
        "Children learn to read at school.",
        "The doctor gave her a medicine.",
        "It rains a lot in autumn.",
        "The king built a great castle.",
    ),
    "de": (
        "Wo wohnt die alte Frau?",
        "Der Zug kommt morgen früh an.",
        "Wasser kocht bei hoher Temperatur.",
        "Er verlor sein Geld im Krieg.",
        "Kinder lernen in der Schule lesen.",
        "Der Arzt gab ihr ein Medikament.",
        "Im Herbst regnet es viel.",
        "Der König baute eine große Burg.",
    ),
    "es": (
        "¿Dónde vive la anciana?",
        "El tren llega mañana por la mañana.",
        "El agua hierve a alta temperatura.",
        "Perdió su dinero en la guerra.",
        "Los niños aprenden a leer en la escuela.",
        "El médico le dio una medicina.",
        "En otoño llueve mucho.",
        "El rey construyó un gran castillo.",
    ),
    "fr": (
        "Où habite la vieille femme ?",
        "Le train arrive demain matin.",
        "L'eau bout à haute température.",
        "Il a perdu son argent pendant la guerre.",
        "Les enfants apprennent à lire à l'école.",
        "Le médecin lui a donné un médicament.",
        "Il pleut beaucoup en automne.",
        "Le roi a construit un grand château.",
    ),
    "pt": (
        "Onde mora a velha senhora?",
        "O comboio chega amanhã de manhã.",
        "A água ferve a alta temperatura.",
        "Ele perdeu o seu dinheiro na guerra.",
        "As crianças aprendem a ler na escola.",
        "O médico deu-lhe um remédio.",
        "Chove muito no outono.",
        "O rei construiu um grande castelo.",
    ),
    "pl": (
        "Gdzie mieszka stara kobieta?",
        "Pociąg przyjeżdża jutro rano.",
        "Woda wrze w wysokiej temperaturze.",
        "Stracił pieniądze na wojnie.",
        "Dzieci uczą się czytać w szkole.",
        "Lekarz dał jej lekarstwo.",
        "Jesienią dużo pada.",
        "Król zbudował wielki zamek.",
    ),
    "ru": (
        "Где живёт старая женщина?",
        "Поезд прибывает завтра утром.",
        "Вода кипит при высокой температуре.",
        "Он потерял свои деньги на войне.",
        "Дети учатся читать в школе.",
        "Врач дал ей лекарство.",
        "Осенью часто идёт дождь.",
        "Король построил большой замок.",
    ),
    "tr": (
        "Yaşlı kadın nerede yaşıyor?",
        "Tren yarın sabah geliyor.",
        "Su yüksek sıcaklıkta kaynar.",
        "Savaşta parasını kaybetti.",
        "Çocuklar okulda okumayı öğrenir.",
        "Doktor ona bir ilaç verdi.",
        "Sonbaharda çok yağmur yağar.",
        "Kral büyük bir kale inşa etti.",
    ),
    "ar": (
        "أين تعيش المرأة العجوز؟",
        "يصل القطار صباح الغد.",
        "يغلي الماء عند درجة حرارة عالية.",
        "لقد خسر ماله في الحرب.",
        "يتعلم الأطفال القراءة في المدرسة.",
        "أعطاها الطبيب دواء.",
        "تمطر كثيرا في الخريف.",
        "بنى الملك قلعة عظيمة.",
    ),
    "hi": (
        "बूढ़ी औरत कहाँ रहती है?",
        "ट्रेन कल सुबह आती है।",
        "पानी ऊँचे तापमान पर उबलता है।",
        "उसने युद्ध में अपना पैसा खो दिया।",
        "बच्चे स्कूल में पढ़ना सीखते हैं।",
        "डॉक्टर ने उसे दवा दी।",
        "शरद ऋतु में बहुत बारिश होती है।",
        "राजा ने एक बड़ा किला बनवाया।",
    ),
    "th": (
        "หญิงชราอาศัยอยู่ที่ไหน",
        "รถไฟจะมาถึงพรุ่งนี้เช้า",
        "น้ำเดือดที่อุณหภูมิสูง",
        "เขาสูญเสียเงินในสงคราม",
        "เด็กๆ เรียนรู้การอ่านที่โรงเรียน",
        "หมอให้ยาแก่เธอ",
        "ฝนตกมากในฤดูใบไม้ร่วง",
        "กษัตริย์สร้างปราสาทใหญ่",
    ),
    "zh": (
        "老妇人住在哪里?",
        "火车明天早上到达。",
        "水在高温下沸腾。",
        "他在战争中失去了钱。",
        "孩子们在学校学习阅读。",
        "医生给了她药。",
        "秋天经常下雨。",
        "国王建造了一座大城堡。",
    ),
    "ja": (
        "その老婦人はどこに住んでいますか。",
        "電車は明日の朝に着きます。",
        "水は高い温度で沸騰する。",
        "彼は戦争でお金を失った。",
        "子供たちは学校で読むことを学ぶ。",
        "医者は彼女に薬を与えた。",
        "秋には雨がたくさん降る。",
        "王は大きな城を建てた。",
    ),
    "ko": (
        "그 노부인은 어디에 살고 있나요?",
        "기차는 내일 아침에 도착합니다.",
        "물은 높은 온도에서 끓는다.",
        "그는 전쟁에서 돈을 잃었다.",
        "아이들은 학교에서 읽기를 배운다.",
        "의사가 그녀에게 약을 주었다.",
        "가을에는 비가 많이 온다.",
        "왕은 큰 성을 지었다.",
    ),
}
"""Sentences of everyday words in several languages, translations in the same places."""


def measure_nearness(embed: Callable[[Sequence[str]], NDArray[np.float32]], language: str) -> float | None:
    """Measure how much nearer than others translations from English are: 1 if they are alike, 0 if no nearer.

    Args:
        embed: texts to unit vectors, (n, d).
        language: ISO 639 code.

    Returns:
        None if there are no sentences in the language. All-MiniLM-L6-v2 has at most 0.22 (French), and
        multilingual-e5-small at least 0.48 (Korean).
    """
    if language not in PARALLEL:
        return None
    if language == REFERENCE:
        return 1.0
    cosines = embed(PARALLEL[REFERENCE]) @ embed(PARALLEL[language]).T
    pairs = float(np.diag(cosines).mean())
    unrelated = float(cosines[~np.eye(len(cosines), dtype=bool)].mean())
    return (pairs - unrelated) / (1 - unrelated)
