"""ISO 639 codes of the labels that language models give.

fastText's lid.176 names Wikipedias: "en", "de", "als". GlotLID, OpenLID and NLLB name ISO 639-3 languages and scripts:
"eng_Latn", "cmn_Hani". Recipes speak of ISO 639-1 where it has a code, else of ISO 639-3: "eng_Latn" is "en",
"ceb_Latn" is "ceb". The script is left out ("srp_Cyrl" and "srp_Latn" are both "sr"); a language of a macrolanguage
that ISO 639-1 knows only as a whole takes the whole's code where it is its usual written form ("cmn" is "zh", "arb" is
"ar"). Labels without a script stay as they are.
"""

from __future__ import annotations

import re

UNDETERMINED = "und"
"""ISO 639's code for a text of unknown language."""

PREFIX = "__label__"

_SCRIPTED = re.compile(r"([a-z]{3})_[A-Z][a-z]{3}").fullmatch

_ALONE = """
aar=aa abk=ab afr=af aka=ak amh=am ara=ar arg=an asm=as ava=av ave=ae aym=ay aze=az bak=ba bam=bm bel=be ben=bn bis=bi
bod=bo bos=bs bre=br bul=bg cat=ca ces=cs cha=ch che=ce chu=cu chv=cv cor=kw cos=co cre=cr cym=cy dan=da deu=de div=dv
dzo=dz ell=el eng=en epo=eo est=et eus=eu ewe=ee fao=fo fas=fa fij=fj fin=fi fra=fr fry=fy ful=ff gla=gd gle=ga glg=gl
glv=gv grn=gn guj=gu hat=ht hau=ha heb=he her=hz hin=hi hmo=ho hrv=hr hun=hu hye=hy ibo=ig ido=io iii=ii iku=iu ile=ie
ina=ia ind=id ipk=ik isl=is ita=it jav=jv jpn=ja kal=kl kan=kn kas=ks kat=ka kau=kr kaz=kk khm=km kik=ki kin=rw kir=ky
kom=kv kon=kg kor=ko kua=kj kur=ku lao=lo lat=la lav=lv lim=li lin=ln lit=lt ltz=lb lub=lu lug=lg mah=mh mal=ml mar=mr
mkd=mk mlg=mg mlt=mt mon=mn mri=mi msa=ms mya=my nau=na nav=nv nbl=nr nde=nd ndo=ng nep=ne nld=nl nno=nn nob=nb nor=no
nya=ny oci=oc oji=oj ori=or orm=om oss=os pan=pa pli=pi pol=pl por=pt pus=ps que=qu roh=rm ron=ro run=rn rus=ru sag=sg
san=sa sin=si slk=sk slv=sl sme=se smo=sm sna=sn snd=sd som=so sot=st spa=es sqi=sq srd=sc srp=sr ssw=ss sun=su swa=sw
swe=sv tah=ty tam=ta tat=tt tel=te tgk=tg tgl=tl tha=th tir=ti ton=to tsn=tn tso=ts tuk=tk tur=tr twi=tw uig=ug ukr=uk
urd=ur uzb=uz ven=ve vie=vi vol=vo wln=wa wol=wo xho=xh yid=yi yor=yo zha=za zho=zh zul=zu
"""
_FOR_THE_WHOLE = """
cmn=zh arb=ar pes=fa swh=sw zsm=ms ekk=et lvs=lv npi=ne ory=or khk=mn plt=mg als=sq azj=az uzn=uz ydd=yi gaz=om fil=tl
kmr=ku ayr=ay gug=gn knc=kr quy=qu pbt=ps
"""

FOR_THE_WHOLE = dict(pair.split("=") for pair in _FOR_THE_WHOLE.split())
"""ISO 639-3 of languages that stand for their macrolanguage (Filipino for Tagalog) to ISO 639-1 of that."""
TWO_LETTERS = dict(pair.split("=") for pair in _ALONE.split()) | FOR_THE_WHOLE
"""ISO 639-3 to ISO 639-1, these included."""


def code_of(label: str) -> str:
    """ISO 639 code of a model's label, with or without "__label__"."""
    name = label.removeprefix(PREFIX)
    scripted = _SCRIPTED(name)
    return TWO_LETTERS.get(scripted[1], scripted[1]) if scripted else name
