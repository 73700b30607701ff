"""Codes of languages that recipes may name, and for one that matches nothing the nearest that does.

Which codes there are is a matter of the model: those of its labels. lid.176's stand here, so that a recipe is checked
without the model; other models are asked (`codes_of`). Common Crawl's index has ISO 639-3 codes of its own.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from corpusmill.errors import NotFound, UsageError
from corpusmill.kernels.language.codes import FOR_THE_WHOLE, TWO_LETTERS, UNDETERMINED, code_of
from corpusmill.models import model_path

EVERY_LANGUAGE = "*"
"""In place of a language that is kept: all are, unknown ones too."""

DEFAULT_MODEL = "lid.176.ftz"

_NAMES = """
af=Afrikaans als=Alemannic am=Amharic an=Aragonese ar=Arabic arz=Egyptian_Arabic as=Assamese ast=Asturian av=Avaric
az=Azerbaijani azb=South_Azerbaijani ba=Bashkir bar=Bavarian bcl=Central_Bikol be=Belarusian bg=Bulgarian bh=Bihari
bn=Bengali bo=Tibetan bpy=Bishnupriya br=Breton bs=Bosnian bxr=Russia_Buriat ca=Catalan cbk=Chavacano ce=Chechen
ceb=Cebuano ckb=Central_Kurdish co=Corsican cs=Czech cv=Chuvash cy=Welsh da=Danish de=German diq=Zazaki
dsb=Lower_Sorbian dty=Dotyali dv=Divehi el=Greek eml=Emilian-Romagnol en=English eo=Esperanto es=Spanish et=Estonian
eu=Basque fa=Persian fi=Finnish fr=French frr=Northern_Frisian fy=Western_Frisian ga=Irish gd=Scottish_Gaelic
gl=Galician gn=Guarani gom=Goan_Konkani gu=Gujarati gv=Manx he=Hebrew hi=Hindi hif=Fiji_Hindi hr=Croatian
hsb=Upper_Sorbian ht=Haitian_Creole hu=Hungarian hy=Armenian ia=Interlingua id=Indonesian ie=Interlingue ilo=Iloko
io=Ido is=Icelandic it=Italian ja=Japanese jbo=Lojban jv=Javanese ka=Georgian kk=Kazakh km=Khmer kn=Kannada ko=Korean
krc=Karachay-Balkar ku=Kurdish kv=Komi kw=Cornish ky=Kyrgyz la=Latin lb=Luxembourgish lez=Lezghian li=Limburgish
lmo=Lombard lo=Lao lrc=Northern_Luri lt=Lithuanian lv=Latvian mai=Maithili mg=Malagasy mhr=Eastern_Mari
min=Minangkabau mk=Macedonian ml=Malayalam mn=Mongolian mr=Marathi mrj=Western_Mari ms=Malay mt=Maltese mwl=Mirandese
my=Burmese myv=Erzya mzn=Mazanderani nah=Nahuatl nap=Neapolitan nds=Low_German ne=Nepali new=Newari nl=Dutch
nn=Norwegian_Nynorsk no=Norwegian oc=Occitan or=Odia os=Ossetic pa=Punjabi pam=Pampanga pfl=Palatine_German pl=Polish
pms=Piedmontese pnb=Western_Punjabi ps=Pashto pt=Portuguese qu=Quechua rm=Romansh ro=Romanian ru=Russian rue=Rusyn
sa=Sanskrit sah=Yakut sc=Sardinian scn=Sicilian sco=Scots sd=Sindhi sh=Serbo-Croatian si=Sinhala sk=Slovak
sl=Slovenian so=Somali sq=Albanian sr=Serbian su=Sundanese sv=Swedish sw=Swahili ta=Tamil te=Telugu tg=Tajik th=Thai
tk=Turkmen tl=Tagalog tr=Turkish tt=Tatar tyv=Tuvinian ug=Uyghur uk=Ukrainian ur=Urdu uz=Uzbek vec=Venetian vep=Veps
vi=Vietnamese vls=West_Flemish vo=Volapük wa=Walloon war=Waray wuu=Wu_Chinese xal=Kalmyk xmf=Mingrelian yi=Yiddish
yo=Yoruba yue=Cantonese zh=Chinese
"""
NAMES = {code: name.replace("_", " ") for code, name in (pair.split("=") for pair in _NAMES.split())}
"""lid.176's codes, and what the languages are called in English."""

# Names, withdrawn codes, and countries that are written for a language; none is a code of lid.176.
_OTHERWISE = """
iw=he in=id ji=yi mo=ro nb=no cmn=zh cn=zh tw=zh hk=zh mandarin=zh jp=ja kr=ko cz=cs dk=da gr=el ua=uk us=en gb=en se=sv
by=be vn=vi rs=sr farsi=fa flemish=nl castilian=es valencian=ca moldavian=ro moldovan=ro bangla=bn oriya=or norsk=no
bokmal=no bokmål=no filipino=tl deutsch=de français=fr francais=fr español=es espanol=es italiano=it português=pt
portugues=pt nederlands=nl polski=pl svenska=sv русский=ru 中文=zh 日本語=ja 한국어=ko
"""

_THREE_LETTERS = """
ace ach ada ady aeb afh agq ain akk akz ale aln alt ang ann anp apw arc arn aro arp arq ars arw ary arz asa ase ast atj
avk awa bal ban bar bas bax bbc bbj bej bem bew bez bfd bfq bgc bgn bho bih bik bin bjn bkm bla blo blt bpy bqi bra brh
brx bss bua bug bum byn byv cad car cay cch ccp ceb cgg chb chg chk chm chn cho chp chr chy cic ckb clc cop cps crg crh
crj crk crl crm crr crs csb csw dak dar dav del den dgr din dje doi dsb dtp dua dum dyo dyu dzg ebu efi egl egy eka elx
enm esu ewo ext fan fat fil fit fon frc frm fro frp frr frs fur gaa gag gan gay gba gbz gez gil glk gmh goh gom gon gor
got grb grc gsw guc gur guz gwi hai hak haw hax hif hil hit hmn hnj hsb hsn hup hur iba ibb ikt ilo inh izh jam jbo jgo
jmc jpr jrb jut kaa kab kac kaj kam kaw kbd kbl kcg kde kea kek ken kfo kgp kha kho khq khw kiu kkj kln kmb koi kok kos
kpe krc kri krj krl kru ksb ksf ksh kum kut kwk kxv lad lag lah lam lez lfn lij lil liv lkt lld lmo lol lou loz lrc lsm
ltg lua lui lun luo lus luy lzh lzz mad maf mag mai mak man mas mde mdf mdr men mer mfe mga mgh mgo mic mid min mnc mni
moe moh mos mrj mua mul mus mwl mwr mwv mye myv mzn nan nap naq nds new nia niu njo nmg nnh nnp nog non nov nqo nso nus
nwc nym nyn nyo nzi ojb ojc ojs ojw oka osa ota pag pal pam pap pau pcd pcm pdc pdt peo pfl phn pis pms pnt pon pqm prg
pro quc qug raj rap rar rej rgn rhg rif rof rom rtm rue rug rup rwk sad sah sam saq sas sat saz sba sbp scn sco sdc sdh
see seh sei sel ses sga sgs shi shn shu sid sjd sje sju slh sli sly sma smj smn sms snk sog srn srr ssy stq str suk sus
sux swb syc syr szl tce tcy tem teo ter tet tgx tht tig tiv tkl tkr tlh tli tly tmh tog tok tpi tru trv trw tsd tsi ttm
ttt tum tvl twq tyv tzm udm uga umb und vai vec vep vls vmf vmw vot vro vun wae wal war was wbp wuu xal xmf xnr xog yao
yap yav ybb yrl yue zap zbl zea zen zgh zun zza
"""
_WHOLE = ("nor", "hbs")  # Norwegian and Serbo-Croatian: in the index, but for no label of a model

INDEX_CODES = frozenset({*_THREE_LETTERS.split(), *(TWO_LETTERS.keys() - FOR_THE_WHOLE.keys()), *_WHOLE})
"""ISO 639-3 codes that Common Crawl's index may have: those of languages with names in CLDR. CLD2, which the index has
them from, knows some 160 of them, and no language of a macrolanguage."""

_OTHER_NAMES = dict(pair.split("=") for pair in _OTHERWISE.split())
_BY_NAME = {name.lower().replace(" ", "-"): code for code, name in NAMES.items()} | _OTHER_NAMES
_LONGER = {short: long for long, short in reversed(TWO_LETTERS.items())} | {"no": "nor", "sh": "hbs"}
"""ISO 639-1 to ISO 639-3: the code of the whole where there are several."""
_LEAST_ALIKE = 0.75


def codes_of(model: str) -> frozenset[str] | None:
    """The codes that a model of a recipe gives (language.model); None where that is not known: no such file, or none of
    fastText's. Whoever uses it says so."""
    if model == DEFAULT_MODEL:
        return frozenset((*NAMES, UNDETERMINED))
    try:
        labels = _labels(str(model_path(model)))
    except NotFound:
        return None
    return frozenset(map(code_of, labels)) | {UNDETERMINED} if labels else None


def fault(codes: Iterable[str], model: str) -> str:
    """What is wrong with codes: a model never gives them. Empty where all is right, or the model is not known."""
    known = codes_of(model)
    said = "" if known is None else unknown(codes, known)
    return said and f"{model} knows no language {said}"


def check(codes: Iterable[str], model: str, key: str = "") -> None:
    """Raise UsageError if a model never gives some codes; `key`: of the recipe, for the message."""
    if said := fault(codes, model):
        raise UsageError(f"{key}: {said}" if key else said)


@lru_cache(maxsize=4)
def _labels(path: str) -> tuple[str, ...]:
    from corpusmill.kernels.language.ftz_model import labels_of  # NumPy: most recipes need it later alone

    return labels_of(path)


def may_be_given(code: str) -> bool:
    """Whether some model may give a code: ISO 639-1, or ISO 639-3 where there is none of ISO 639-1."""
    three = len(code) == 3 and code.isascii() and code.isalpha() and code.islower()
    return code in NAMES or code in _LONGER or (three and code not in TWO_LETTERS)


def unknown(words: Iterable[str], known: Collection[str]) -> str:
    """The words that are none of the known codes, each with the nearest that is one; empty where all are known."""
    return ", ".join(_with_nearest(word, known) for word in dict.fromkeys(words) if word not in known)


def _with_nearest(word: str, known: Collection[str]) -> str:
    near = nearest(word, known)
    return f'"{word}"' + (f' (did you mean "{near}"?)' if near else "")


def nearest(word: str, known: Collection[str]) -> str | None:
    """The known code that is most likely meant: without region or script, of a language's name, of another alphabet of
    codes, else the one most alike."""
    said = "-".join(re.findall(r"\w+", word.lower().replace("_", "-")))
    for part in (said, *said.split("-")):
        for code in _meanings(part):
            if code in known:
                return code
    names = difflib.get_close_matches(said, _BY_NAME, n=1, cutoff=_LEAST_ALIKE)
    alike = [code for name in names for code in _meanings(name) if code in known]
    return next(iter(alike or difflib.get_close_matches(said, sorted(known), n=1, cutoff=_LEAST_ALIKE)), None)


def _meanings(word: str) -> Iterator[str]:
    for code in (word, TWO_LETTERS.get(word, ""), _BY_NAME.get(word, "")):
        yield from (code, TWO_LETTERS.get(code, ""), _OTHER_NAMES.get(code, ""), _LONGER.get(code, ""))
        yield _LONGER.get(_OTHER_NAMES.get(code, ""), "")
        yield _LONGER.get(TWO_LETTERS.get(code, ""), "")
