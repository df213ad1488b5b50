"""Countries and what their people and things are called, as far as neither is formed like any other word."""

import re

# "Country: adjective, adjective"; several names of one country stand before the colon.
_TABLE = """Afghanistan: Afghan; Albania: Albanian; Algeria: Algerian; Andorra: Andorran; Angola: Angolan
Argentina: Argentine, Argentinian, Argentinean; Armenia: Armenian; Australia: Australian; Austria: Austrian
Azerbaijan: Azerbaijani; Bahamas: Bahamian; Bahrain: Bahraini; Bangladesh: Bangladeshi; Barbados: Barbadian
Belarus: Belarusian, Belarussian; Belgium: Belgian; Belize: Belizean; Benin: Beninese; Bhutan: Bhutanese
Bolivia: Bolivian; Bosnia and Herzegovina, Bosnia: Bosnian; Botswana: Botswanan; Brazil: Brazilian
Bulgaria: Bulgarian; Burkina Faso: Burkinabé; Burundi: Burundian; Cambodia: Cambodian; Cameroon: Cameroonian
Canada: Canadian; Cape Verde: Cape Verdean; Chad: Chadian; Chile: Chilean; China: Chinese; Colombia: Colombian
Costa Rica: Costa Rican; Croatia: Croatian, Croat; Cuba: Cuban; Cyprus: Cypriot; Czechia, Czech Republic: Czech
Czechoslovakia: Czechoslovak, Czechoslovakian; Denmark: Danish; Djibouti: Djiboutian; Dominica: Dominican
Dominican Republic: Dominican; East Germany: East German; Ecuador: Ecuadorian; Egypt: Egyptian
El Salvador: Salvadoran; England: English; Eritrea: Eritrean; Estonia: Estonian; Ethiopia: Ethiopian; Fiji: Fijian
Finland: Finnish; France: French; Gabon: Gabonese; Gambia: Gambian; Georgia: Georgian; Germany: German
Ghana: Ghanaian; Greece: Greek; Greenland: Greenlandic; Grenada: Grenadian; Guatemala: Guatemalan
Guinea: Guinean; Guyana: Guyanese; Haiti: Haitian; Honduras: Honduran; Hong Kong: Hong Kong; Hungary: Hungarian
Iceland: Icelandic; India: Indian; Indonesia: Indonesian; Iran: Iranian, Persian; Iraq: Iraqi; Ireland: Irish
Israel: Israeli; Italy: Italian; Ivory Coast: Ivorian; Jamaica: Jamaican; Japan: Japanese; Jordan: Jordanian
Kazakhstan: Kazakh, Kazakhstani; Kenya: Kenyan; Kosovo: Kosovar, Kosovan; Kuwait: Kuwaiti; Kyrgyzstan: Kyrgyz
Laos: Laotian, Lao; Latvia: Latvian; Lebanon: Lebanese; Liberia: Liberian; Libya: Libyan
Liechtenstein: Liechtensteiner; Lithuania: Lithuanian; Luxembourg: Luxembourgish; Macau: Macanese
Madagascar: Malagasy; Malawi: Malawian; Malaysia: Malaysian; Maldives: Maldivian; Mali: Malian; Malta: Maltese
Mauritania: Mauritanian; Mauritius: Mauritian; Mexico: Mexican; Moldova: Moldovan; Monaco: Monégasque
Mongolia: Mongolian; Montenegro: Montenegrin; Morocco: Moroccan; Mozambique: Mozambican; Myanmar, Burma: Burmese
Namibia: Namibian; Nepal: Nepalese, Nepali; Netherlands: Dutch; New Zealand: New Zealand; Nicaragua: Nicaraguan
Niger: Nigerien; Nigeria: Nigerian; North Korea: North Korean; North Macedonia, Macedonia: Macedonian
Northern Ireland: Northern Irish; Norway: Norwegian; Oman: Omani; Ottoman Empire: Ottoman; Pakistan: Pakistani
Palestine: Palestinian; Panama: Panamanian; Papua New Guinea: Papua New Guinean; Paraguay: Paraguayan
Peru: Peruvian; Philippines: Filipino, Philippine; Poland: Polish; Portugal: Portuguese; Prussia: Prussian
Puerto Rico: Puerto Rican; Qatar: Qatari; Romania: Romanian; Russia: Russian; Rwanda: Rwandan; Samoa: Samoan
Saudi Arabia: Saudi, Saudi Arabian; Scotland: Scottish; Senegal: Senegalese; Serbia: Serbian, Serb
Sierra Leone: Sierra Leonean; Singapore: Singaporean; Slovakia: Slovak, Slovakian
Slovenia: Slovenian, Slovene; Somalia: Somali; South Africa: South African
South Korea: South Korean; South Sudan: South Sudanese; Soviet Union, USSR: Soviet; Spain: Spanish
Sri Lanka: Sri Lankan; Sudan: Sudanese; Suriname: Surinamese; Sweden: Swedish; Switzerland: Swiss; Syria: Syrian
Taiwan: Taiwanese; Tajikistan: Tajik; Tanzania: Tanzanian; Thailand: Thai; Togo: Togolese; Tonga: Tongan
Trinidad and Tobago: Trinidadian; Tunisia: Tunisian; Turkey: Turkish; Turkmenistan: Turkmen; Uganda: Ugandan
Ukraine: Ukrainian; United Arab Emirates, UAE: Emirati; United Kingdom, UK, U.K., Great Britain, Britain: British
United States, United States of America, USA, U.S.A., US, U.S.: American, US, U.S.; Uruguay: Uruguayan
Uzbekistan: Uzbek; Vatican City: Vatican; Venezuela: Venezuelan; Vietnam: Vietnamese; Wales: Welsh
West Germany: West German; Yemen: Yemeni; Yugoslavia: Yugoslav, Yugoslavian; Zambia: Zambian
Zimbabwe: Zimbabwean"""


def _read() -> tuple[dict[str, str], dict[str, str]]:
    countries: dict[str, str] = {}
    adjectives: dict[str, str] = {}
    for entry in _TABLE.replace("\n", "; ").split("; "):
        names, words = (side.split(", ") for side in entry.split(": "))
        countries |= {name.casefold(): names[0] for name in names}
        for word in words:
            adjectives.setdefault(word.casefold(), names[0])
    return countries, adjectives


COUNTRIES, ADJECTIVES = _read()
"""Case-folded name, or adjective, to the country's first name in the table."""
JOINED_COUNTRIES = tuple(name for entry in re.split(r"[;:,\n]", _TABLE) if " and " in (name := entry.strip()))
"""Countries that the names in text may fall apart at."""


def find_country(name: str) -> str | None:
    """The country that a name or an adjective stands for: "Finnish" for Finland; None if it is neither."""
    key = name.strip().casefold()
    return COUNTRIES.get(key) or ADJECTIVES.get(key)
