// SPDX-License-Identifier: Apache-2.0
#include "text/abbreviations.h"

#include <map>
#include <sstream>
#include <vector>

#include "text/code_points.h"

namespace ct2triton {
namespace {

// One line for each language: its two- and three-letter codes (and those of related languages),
// then words in lower case. This list is the project's own.
struct Words {
  const char* codes;
  bool ordinals;
  const char* abbreviations;
  const char* before_number;
  const char* starters;
};

constexpr Words kCommon = {"", false, "dr prof mr mrs ms st cf vs ca ing dipl mag",
                           "no nr fig tel p pp vol", ""};

constexpr Words kLanguages[] = {
    {"en eng", false,
     "mr mrs ms messrs mx dr prof rev fr hon gov sen rep pres gen col lt capt cpt cmdr adm maj sgt "
     "cpl pvt st sts mt ft vs viz cf approx ca dept univ assn bros mfg govt est esp incl orig "
     "eds trans resp misc abbr ave blvd rd hwy supt messrs",
     "no nos fig figs eq eqs vol vols ch chap sec sect art arts p pp pg para pt op cat cap ref "
     "nr tel ext jan feb mar apr jun jul aug sep sept oct nov dec",
     "the a an it he she they we i you this that these those there then but and in on at when "
     "however after before his her their our its my if as"},
    {"de deu ger nds gsw ltz lb bar", true,
     "hr hrn fr frl dr drs prof dipl ing mag bzw evtl ggf ca vgl sog bspw inkl exkl zzgl abzgl "
     "allg bes insb jr sen st str hl geb gest verh gez max min tel abt bd bde hrsg verf red "
     "mio mrd tsd resp etw jmd jmdn kfm techn phil jur med rer nat hab univ ehem "
     "mind wg zw gegr chr",
     "nr nrn abb abs art aufl bd kap s seite ziff zif lit fig tab anm anl tel no jan feb mrz apr "
     "jun jul aug sep sept okt nov dez rdnr rn",
     "der die das ein eine er sie es wir ich du ihr dies diese dieser dann aber und im in am"},
    {"nl nld dut af afr fy fry li lim", false,
     "dhr mevr mw mej dr drs ir ing mr prof ds bijv bv ca cf d.w.z evt excl incl jl jr "
     "o.a resp st t.a.v vgl zgn zg mnr mev prof",
     "nr nrs fig art blz bl pag p hfst par tel no jan feb mrt apr jun jul aug sep sept okt nov dec",
     "de het een hij zij ze we wij ik dit dat er maar en in op die n dit"},
    {"sv swe da dan nb nob no nor nn nno is isl ice fo fao", true,
     "dr prof bl.a ca dvs ev exkl forts f.d fr hr inkl jfr kap kl m.fl m.m mag max min "
     "nuv obs o.d resp s.k st tex tel t.ex t.o.m ung vd feks f.eks bl pga dvs mht "
     "vedr ang adr red ekskl evt frk fru jf pkt hhv",
     "nr fig kap art s sid sidan side stk tel kl jan feb mar apr jun jul aug sep sept okt "
     "nov dec des",
     "den det en ett et han hun hon de vi jag jeg du men og och i på"},
    {"fr fra fre oc oci wa wln ht hat br bre co cos", false,
     "mm mme mmes mlle mlles dr drs pr prof me mgr st ste sts stes av bd boul env cf ex éd "
     "fg fém masc hab jr sr vve qqch qqn c.-à-d càd n.d.l.r min max tél",
     "no nos n° fig art al chap p pp pl vol t tél éd janv févr avr juil sept oct nov déc réf",
     "le la les un une il elle ils elles on nous vous je ce cette ces mais et dans l"},
    {"es spa ca cat gl glg ast eu eus baq arg", false,
     "sr sra sras sres srta srtas dr dra dres d dña da prof profa lic ing arq abg gral cnel cap "
     "tte sto sta ud uds vd vds exc excmo excma ilmo ilma mons pte pdte admón avda av ctra c/ "
     "dpto apdo aprox cf cfr ej fdo gob máx mín ppal prov vto sant",
     "no nº núm núms fig figs art arts cap caps pág págs pag p pp vol t tel tfno ed ene feb mar "
     "abr jun jul ago sep sept oct nov dic",
     "el la los las un una él ella ellos nosotros yo este esta pero y en no"},
    {"pt por", false,
     "sr sra srs sras srta dr dra drs dras prof profa profs eng engª arq exmo exma ilmo ilma "
     "dom d gen cel cap sto sta av pça lgo apto cf ex aprox máx mín obs adm dep depto",
     "no nº núm n fig figs art arts cap caps pág págs p pp vol tel ed jan fev mar abr jun jul "
     "ago set out nov dez",
     "o a os as um uma ele ela eles nós eu este esta mas e em no na"},
    {"it ita sc srd scn lmo vec fur lij pms", false,
     "sig sigg sigra sig.ra sig.na dott dott.ssa dr prof prof.ssa ing avv arch geom rag on sen "
     "gen col cap ten mons don s ss spett egr gent ill cav comm cfr es ca max min "
     "tel fam f.lli v.le p.zza c.so",
     "n nn no fig figg art artt cap capp pag pagg p pp vol tel ed gen feb mar apr mag giu lug "
     "ago set sett ott nov dic",
     "il lo la i gli le un una egli lui lei essi noi io questo questa ma e in nel"},
    {"ro ron rum mo", false,
     "dl dna d-na d-l dr prof ing av gen col cpt str bd bl sc ap et jud mun cf lt sf "
     "sft pr ex aprox",
     "nr fig art alin lit cap pag p pp vol tel ian feb mar apr iun iul aug sept oct nov dec",
     "el ea ei ele noi eu acest aceasta dar și în un o"},
    {"pl pol szl csb", true,
     "dr hab inż mgr prof dyr red gen płk mjr kpt por st sp śp ks bp abp kard br o św ul al pl "
     "os woj pow gm m.in np tzn tzw tj ok ww wg wz zob por ang niem łac franc ros im n.p.m "
     "nast ub br jw max min godz",
     "nr nry rys tab art ust pkt lit par rozdz str s t poz tel ryc godz r",
     "to ten ta on ona oni my ja ale w na po"},
    {"cs ces cze sk slk slo", true,
     "p pí sl dr ing mgr bc doc prof mudr judr phdr rndr csc gen plk kpt arch sv st ml nar zem "
     "tzv tzn tj např resp cca popř příp mj zvl vč aj tzn viz nám ul tř max min "
     "napr resp príp vrát tzv t.j n.l",
     "č čís obr tab str s odst čl písm kap sv roč tel par ods",
     "to ten ta on ona oni my já ale v na"},
    {"sl slv hr hrv bs bos sr srp sh hbs me cnr", true,
     "dr mr prof doc ing dipl g ga gđa gđica gosp sv npr tzv tj oz ul al odn "
     "usp prof mag inž univ akad sc ca max min god pok tzn др мр проф инж г нпр тзв тј",
     "br št čl str tč sl tab pog st tel бр стр чл", "to ta on ona oni mi ja ali u na"},
    {"ru rus be bel", false,
     "г гг гр д им ул пл пр просп пер корп кв обл р-н пос с ст т тт т.е т.к т.н "
     "акад проф доц инж ген полк кап лейт св см ср напр тыс н.э "
     "вв в ок прим ред изд сост пер авт соч род ум англ нем фр лат греч",
     "рис табл стр с гл п пп ст ч т тел вып илл № янв февр апр авг сент окт нояб дек",
     "он она они мы я это этот но и в на"},
    {"uk ukr rue", false,
     "р рр гр ім вул пл просп пров буд кв обл р-н смт с м ст т тов акад проф доц інж ген полк св "
     "див пор напр тис н.е ст ред вид упоряд пер авт англ нім лат",
     "рис табл стор с гл п пп ст ч т тел вип №", "він вона вони ми я це цей але і в на"},
    {"bg bul mk mkd", false,
     "г гр ул бул пл кв бл вх ет ап обл общ с проф доц инж акад д-р ген полк св вж ср напр т.е "
     "т.нар т.н ок прибл хил г-н г-жа",
     "чл ал т стр с фиг табл гл тел бр", "той тя те ние аз това но и в на"},
    {"hu hun", true,
     "dr prof ifj id özv ún pl kb ill vö ld mh u ti uo ford szerk szül mb max min "
     "st szt gr br vitéz",
     "sz old o p pp fej bek pont ábra tel kb", "a az egy ő ők mi én ez de és"},
    {"fi fin et est ekk krl", true,
     "esim mm ns ks vrt n noin tri dos prof dipl ins rva rvt ent nyk eaa jaa os ym t p k "
     "hra nti rva lk kpl näit nn vrd lk tn pst mnt dr st",
     "s ss nro n:o kpl luku kuva taul puh lk nr joon tab tel lk",
     "se hän he me minä ja mutta tämä ta nad me"},
    {"lt lit lv lav ltg", true,
     "dr prof doc hab inž gen plk kpt šv st g pr a pvz žr t.y pan tūkst "
     "ist vad piem t.i sk sal apm red izd tulk akad",
     "nr pav lent p psl sk skyr str att tab lpp tel",
     "tai jis ji jie mes aš bet ir tas viņš viņa mēs es"},
    {"tr tur az aze tk tuk crh", true,
     "dr doç prof av yrd uzm öğr gör alb yzb tğm sn bkz örn yak hz apt cad sok mah blv "
     "müh mim ecz op ord t.c st alm ing fr",
     "no s sh ss şek tab cilt böl md tel çiz", "bu o onlar biz ben ama ve bir"},
    {"el ell gre grc", false,
     "κ κα κκ δρ καθ βλ πρβλ π.χ δηλ λ.χ λεωφ οδ αγ στρ υπ περ εκ εκδ "
     "μτφρ ορθ τ.μ δις",
     "αρ σελ σ σσ άρθρ παρ εικ πίν τόμ κεφ τηλ", "ο η το οι τα αυτός αυτή αλλά και"},
    {"vi vie id ind ms msa zsm fil tl tgl ceb jv jav su sun", false,
     "ts ths gs pgs bs ks tp q p mr mrs dr prof ir drs dra hj h sdr sdri yth kec kab prov jl gg "
     "tgl a.n d.a u.p bpk ibu st sta sto gng bb dra atty engr hon",
     "no nr hlm hal gbr tab tel telp tr art pasal",
     "dia mereka kami saya ini itu tetapi dan ang siya sila kami"},
    {"hi hin mr mar ne npi nep mai bho", false, "डॉ डा प्रो श्री सुश्री पं स्व इं मि सं रु अ ब कु ले",
     "सं क्र नं पृ", ""},
    {"eo epo ia ina ie ile la lat", false, "d-ro prof s-ro s-ino f-ino ekz t.e bv sro st dr cf ed",
     "n-ro nro p pĝ vol fig no", "la li ŝi ĝi ili ni mi sed kaj"},
};

std::unordered_set<std::string> WordSet(const char* words) {
  std::istringstream stream(words);
  std::unordered_set<std::string> set;
  for (std::string word; stream >> word;) set.insert(word);
  return set;
}

StopRules RulesOf(const Words& words) {
  StopRules rules;
  rules.abbreviations = WordSet(words.abbreviations);
  rules.before_number = WordSet(words.before_number);
  rules.starters = WordSet(words.starters);
  rules.ordinals = words.ordinals;
  return rules;
}

std::map<std::string, StopRules, std::less<>> AllRules() {
  std::map<std::string, StopRules, std::less<>> all;
  all[""] = RulesOf(kCommon);
  for (const Words& words : kLanguages) {
    const StopRules rules = RulesOf(words);
    for (const std::string& code : WordSet(words.codes)) all[code] = rules;
  }
  for (const char* code : {"el", "ell", "gre", "grc"}) all[code].greek_question_mark = true;
  return all;
}

}  // namespace

std::string BaseLanguage(std::string_view code) {
  return Lowered(code.substr(0, code.find_first_of("-_@")));
}

const StopRules& StopRulesOf(std::string_view language) {
  static const auto all = AllRules();
  const auto found = all.find(BaseLanguage(language));
  return found == all.end() ? all.find("")->second : found->second;
}

}  // namespace ct2triton
