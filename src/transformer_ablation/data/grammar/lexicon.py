"""Nouns, adjectives and their meanings: the data of the grammar.

A noun line is `english[/plural] German gender plural`; a trailing `w` marks the weak
masculine declension (every form but the nominative singular is the plural form) and
a plural of `-` a mass noun. Nouns stand most frequent first: choice is Zipfian.
"""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Noun:
    """An English and German noun; gender is m, f or n; mass nouns have no plural."""

    en: str
    en_plural: str
    de: str
    gender: str
    de_plural: str
    weak: bool = False

    @property
    def mass(self) -> bool:
        return self.de_plural == "-"


@dataclasses.dataclass(frozen=True, slots=True)
class Adjective:
    en: str
    de: str
    comparative: str = ""


def english_plural(word: str) -> str:
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "ch", "sh")) else "s")


def noun(line: str) -> Noun:
    english, de, gender, de_plural, *flags = line.split()
    en, _, en_plural = english.replace("_", " ").partition("/")
    plural = en_plural or english_plural(en)
    return Noun(en, plural, de, gender, de_plural, weak="w" in flags)


def _nouns(text: str) -> tuple[Noun, ...]:
    return tuple(noun(entry) for entry in text.replace("\n", ",").split(",") if entry)


NOUNS: dict[str, tuple[Noun, ...]] = {
    "man": _nouns("""
man/men Mann m Männer,boy Junge m Jungen w,teacher Lehrer m Lehrer
father Vater m Väter,doctor Arzt m Ärzte,neighbour Nachbar m Nachbarn w
brother Bruder m Brüder,friend Freund m Freunde,student Student m Studenten w
son Sohn m Söhne,farmer Bauer m Bauern w,uncle Onkel m Onkel
grandfather Großvater m Großväter,customer Kunde m Kunden w,guest Gast m Gäste
colleague Kollege m Kollegen w,baker Bäcker m Bäcker
policeman/policemen Polizist m Polizisten w,king König m Könige
waiter Kellner m Kellner,cook Koch m Köche,judge Richter m Richter
tourist Tourist m Touristen w,gardener Gärtner m Gärtner,lawyer Anwalt m Anwälte
writer Schriftsteller m Schriftsteller,thief/thieves Dieb m Diebe
prince Prinz m Prinzen w,artist Künstler m Künstler,hunter Jäger m Jäger
mayor Bürgermeister m Bürgermeister,nephew Neffe m Neffen w
pilot Pilot m Piloten w,sailor Matrose m Matrosen w,expert Experte m Experten w
witness Zeuge m Zeugen w,hero/heroes Held m Helden w,shepherd Schäfer m Schäfer
monk Mönch m Mönche,carpenter Tischler m Tischler,engineer Ingenieur m Ingenieure
blacksmith Schmied m Schmiede,giant Riese m Riesen w"""),
    "woman": _nouns("""
woman/women Frau f Frauen,mother Mutter f Mütter,sister Schwester f Schwestern
daughter Tochter f Töchter,grandmother Großmutter f Großmütter,aunt Tante f Tanten
nurse Krankenschwester f Krankenschwestern,queen Königin f Königinnen
waitress Kellnerin f Kellnerinnen,actress Schauspielerin f Schauspielerinnen
niece Nichte f Nichten,princess Prinzessin f Prinzessinnen,widow Witwe f Witwen"""),
    "child": _nouns("""
child/children Kind n Kinder,girl Mädchen n Mädchen"""),
    "animal": _nouns("""
dog Hund m Hunde,cat Katze f Katzen,horse Pferd n Pferde,bird Vogel m Vögel
cow Kuh f Kühe,mouse/mice Maus f Mäuse,bear Bär m Bären w
sheep/sheep Schaf n Schafe,lion Löwe m Löwen w,goat Ziege f Ziegen
pig Schwein n Schweine,fox Fuchs m Füchse,wolf/wolves Wolf m Wölfe
rabbit Kaninchen n Kaninchen,duck Ente f Enten,donkey Esel m Esel
elephant Elefant m Elefanten w,monkey Affe m Affen w,goose/geese Gans f Gänse
hedgehog Igel m Igel,squirrel Eichhörnchen n Eichhörnchen,raven Rabe m Raben w
camel Kamel n Kamele,badger Dachs m Dachse"""),
    "dish": _nouns("""
apple Apfel m Äpfel,cake Kuchen m Kuchen,egg Ei n Eier
potato/potatoes Kartoffel f Kartoffeln,soup Suppe f Suppen,pear Birne f Birnen
sausage Wurst f Würste,carrot Karotte f Karotten,pancake Pfannkuchen m Pfannkuchen
cherry Kirsche f Kirschen,biscuit Keks m Kekse,plum Pflaume f Pflaumen
mushroom Pilz m Pilze,pumpkin Kürbis m Kürbisse"""),
    "food": _nouns("""
bread Brot n -,cheese Käse m -,meat Fleisch n -,rice Reis m -,fruit Obst n -
butter Butter f -,ham Schinken m -,honey Honig m -"""),
    "drink": _nouns("""
water Wasser n -,coffee Kaffee m -,milk Milch f -,tea Tee m -,beer Bier n -
wine Wein m -,juice Saft m -,lemonade Limonade f -"""),
    "text": _nouns("""
report Bericht m Berichte,message Nachricht f Nachrichten,poem Gedicht n Gedichte
novel Roman m Romane,article Artikel m Artikel,recipe Rezept n Rezepte
fairy_tale Märchen n Märchen"""),
    "print": _nouns("""
book Buch n Bücher,newspaper Zeitung f Zeitungen
magazine Zeitschrift f Zeitschriften,dictionary Wörterbuch n Wörterbücher
diary Tagebuch n Tagebücher"""),
    "clothing": _nouns("""
coat Mantel m Mäntel,dress Kleid n Kleider,jacket Jacke f Jacken
shirt Hemd n Hemden,skirt Rock m Röcke,jumper Pullover m Pullover
suit Anzug m Anzüge,blouse Bluse f Blusen,apron Schürze f Schürzen"""),
    "pair": _nouns("""
shoe Schuh m Schuhe,glove Handschuh m Handschuhe,boot Stiefel m Stiefel
sock Socke f Socken"""),
    "device": _nouns("""
computer Computer m Computer,radio Radio n Radios,lamp Lampe f Lampen
printer Drucker m Drucker,washing_machine Waschmaschine f Waschmaschinen
camera Kamera f Kameras,heater Heizung f Heizungen,fan Ventilator m Ventilatoren"""),
    "vehicle": _nouns("""
car Auto n Autos,bicycle Fahrrad n Fahrräder,boat Boot n Boote
lorry Lastwagen m Lastwagen,motorbike Motorrad n Motorräder
tractor Traktor m Traktoren,carriage Kutsche f Kutschen"""),
    "upright": _nouns("""
bottle Flasche f Flaschen,cup Tasse f Tassen,suitcase Koffer m Koffer
box Kiste f Kisten,basket Korb m Körbe,plate Teller m Teller,vase Vase f Vasen
bucket Eimer m Eimer,jug Krug m Krüge,candle Kerze f Kerzen"""),
    "flat": _nouns("""
knife/knives Messer n Messer,ring Ring m Ringe,ticket Fahrkarte f Fahrkarten
pencil Bleistift m Bleistifte,umbrella Regenschirm m Regenschirme
blanket Decke f Decken,pillow Kissen n Kissen,spoon Löffel m Löffel
coin Münze f Münzen,hat Hut m Hüte,scarf/scarves Schal m Schals
doll Puppe f Puppen,hammer Hammer m Hämmer,stamp Briefmarke f Briefmarken
saw Säge f Sägen,needle Nadel f Nadeln"""),
    "furniture": _nouns("""
table Tisch m Tische,chair Stuhl m Stühle,bed Bett n Betten,sofa Sofa n Sofas
wardrobe Schrank m Schränke,shelf/shelves Regal n Regale
desk Schreibtisch m Schreibtische,bench Bank f Bänke,chest Truhe f Truhen"""),
    "opening": _nouns("""
door Tür f Türen,window Fenster n Fenster,drawer Schublade f Schubladen
gate Tor n Tore"""),
    "room": _nouns("""
kitchen Küche f Küchen,room Zimmer n Zimmer,office Büro n Büros
cellar Keller m Keller,bathroom Badezimmer n Badezimmer
bedroom Schlafzimmer n Schlafzimmer,workshop Werkstatt f Werkstätten
garage Garage f Garagen"""),
    "building": _nouns("""
house Haus n Häuser,school Schule f Schulen,church Kirche f Kirchen
hotel Hotel n Hotels,station Bahnhof m Bahnhöfe
restaurant Restaurant n Restaurants,museum Museum n Museen
library Bibliothek f Bibliotheken,hospital Krankenhaus n Krankenhäuser
castle Schloss n Schlösser,factory Fabrik f Fabriken,theatre Theater n Theater
bakery Bäckerei f Bäckereien,monastery Kloster n Klöster,barn Scheune f Scheunen"""),
    "outdoors": _nouns("""
garden Garten m Gärten,park Park m Parks,forest Wald m Wälder
village Dorf n Dörfer,town Stadt f Städte,valley Tal n Täler,cave Höhle f Höhlen"""),
    "landmark": _nouns("""
tree Baum m Bäume,bridge Brücke f Brücken,river Fluss m Flüsse,wall Mauer f Mauern
lake See m Seen,fence Zaun m Zäune,well Brunnen m Brunnen"""),
    "idea": _nouns("""
question Frage f Fragen,problem Problem n Probleme,answer Antwort f Antworten
plan Plan m Pläne,decision Entscheidung f Entscheidungen,rule Regel f Regeln
mistake Fehler m Fehler,secret Geheimnis n Geheimnisse"""),
    "tale": _nouns(
        "story Geschichte f Geschichten,joke Witz m Witze,fable Fabel f Fabeln"
    ),
    "song": _nouns(
        "song Lied n Lieder,melody Melodie f Melodien,ballad Ballade f Balladen"
    ),
    "ride": _nouns("train Zug m Züge,bus Bus m Busse,ferry Fähre f Fähren"),
    "file": _nouns("file Datei f Dateien,document Dokument n Dokumente"),
    "fish": _nouns("trout/trout Forelle f Forellen,ball Ball m Bälle"),
}
GROUPS = {
    "person": ("man", "woman", "child"),
    "thing": ("upright", "flat"),
    "place": ("room", "building", "outdoors"),
}

# People who are somebody's: `my boy` or `the king's woman` would be odd.
RELATIONAL = frozenset(
    """child father mother brother sister friend neighbour son daughter uncle aunt
    grandfather grandmother customer guest colleague nephew niece teacher doctor cook
    lawyer gardener""".split()
)

# Modifiers of compounds with their linking elements, and the heads they go with.
COMPOUND_MODIFIERS = (
    ("kitchen", "Küchen"), ("garden", "Garten"), ("school", "Schul"),
    ("office", "Büro"), ("hotel", "Hotel"), ("church", "Kirchen"),
    ("cellar", "Keller"), ("library", "Bibliotheks"), ("hospital", "Krankenhaus"),
    ("monastery", "Kloster"), ("station", "Bahnhofs"),
)  # fmt: skip
COMPOUND_HEADS = {
    "furniture": ("table", "chair", "bench", "shelf"),
    "opening": ("door", "window", "gate"),
    "device": ("lamp", "computer", "radio"),
}


def _adjectives(text: str) -> tuple[Adjective, ...]:
    rows = (entry.split() for entry in text.replace("\n", ",").split(",") if entry)
    return tuple(Adjective(*row) for row in rows)


# Only adjectives with a comparative in both languages of the plain kind carry one.
ADJECTIVES: dict[str, tuple[Adjective, ...]] = {
    "person": _adjectives("""
old alt älter,young jung jünger,friendly freundlich freundlicher,tall groß größer
famous berühmt,rich reich reicher,clever klug klüger,poor arm ärmer
brave mutig mutiger,short klein kleiner,curious neugierig,polite höflich
lazy faul fauler,strong stark stärker,lonely einsam,stubborn stur,honest ehrlich
diligent fleißig,blind blind"""),
    "child": _adjectives("""
young jung jünger,clever klug klüger,brave mutig mutiger,small klein kleiner
curious neugierig,polite höflich,lazy faul fauler,stubborn stur,lonely einsam
friendly freundlich freundlicher,tall groß größer,blind blind"""),
    "mood": _adjectives("""
tired müde,ill krank,hungry hungrig,sad traurig,happy glücklich,thirsty durstig
angry wütend,nervous nervös,satisfied zufrieden,jealous eifersüchtig"""),
    "animal": _adjectives("""
big groß größer,small klein kleiner,black schwarz,old alt älter,white weiß
hungry hungrig,wild wild wilder,fast schnell schneller,tame zahm,brown braun
dangerous gefährlich,shy scheu"""),
    "dish": _adjectives("""
fresh frisch,sweet süß,big groß,warm warm,cold kalt,delicious köstlich,rotten faul"""),
    "food": _adjectives("""
fresh frisch,good gut,cheap billig,delicious köstlich,expensive teuer,hard hart"""),
    "drink": _adjectives("""
cold kalt,hot heiß,warm warm,good gut,fresh frisch,delicious köstlich"""),
    "reading": _adjectives("""
long lang länger,new neu neuer,short kurz kürzer,interesting interessant
old alt älter,strange seltsam,boring langweilig,thick dick dicker,famous berühmt
sad traurig"""),
    "clothing": _adjectives("""
new neu neuer,red rot,warm warm wärmer,black schwarz,expensive teuer teurer
blue blau,white weiß,cheap billig billiger,green grün,elegant elegant
dirty schmutzig,yellow gelb"""),
    "pair": _adjectives("right recht,left link,new neu,dirty schmutzig,wet nass"),
    "object": _adjectives("""
new neu neuer,old alt älter,heavy schwer schwerer,light leicht leichter
small klein kleiner,big groß größer,expensive teuer teurer,beautiful schön schöner
red rot,cheap billig billiger,broken kaputt,useful nützlich,green grün
valuable wertvoll,round rund,rusty rostig"""),
    "room": _adjectives("""
big groß größer,small klein kleiner,dark dunkel dunkler,light hell heller
warm warm wärmer,clean sauber,empty leer leerer,cold kalt kälter,quiet ruhig"""),
    "building": _adjectives("""
old alt älter,big groß größer,new neu neuer,beautiful schön schöner,famous berühmt
small klein kleiner,modern modern,tall hoch höher,ugly hässlich"""),
    "outdoors": _adjectives("""
small klein kleiner,beautiful schön schöner,big groß größer,quiet ruhig
dark dunkel dunkler"""),
    "landmark": _adjectives("""
old alt älter,big groß größer,small klein kleiner,long lang"""),
    "idea": _adjectives("""
new neu,right richtig,hard schwer schwerer,important wichtig wichtiger
simple einfach einfacher,strange seltsam,terrible schrecklich,silly dumm"""),
}  # fmt: skip
ADJECTIVES_OF = {
    "man": "person", "woman": "person", "child": "child", "animal": "animal",
    "dish": "dish", "food": "food", "drink": "drink", "text": "reading",
    "print": "reading", "tale": "reading", "song": "reading", "clothing": "clothing",
    "pair": "pair", "device": "object", "vehicle": "object", "upright": "object",
    "flat": "object", "furniture": "object", "opening": "object", "room": "room",
    "building": "building", "outdoors": "outdoors", "landmark": "landmark",
    "idea": "idea", "ride": "object", "file": "idea", "fish": "landmark",
}  # fmt: skip
