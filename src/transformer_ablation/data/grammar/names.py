"""Proper names: first names, real and made-up surnames, and towns."""

MEN = """Tom Paul Peter Karl Max Felix David Jonas Martin Simon Emil Anton Oskar Jan
Robert Daniel Philipp Moritz Erik Leon Hugo Konrad Otto Viktor Bruno Ludwig Arthur Till
Gregor Rasmus Kilian Ansgar Leopold Valentin Torben Egon Wendelin Severin Quirin
Balthasar""".split()
WOMEN = """Anna Maria Lisa Laura Julia Sophie Emma Eva Lena Clara Sarah Nina Ida Helga
Martha Greta Paula Ruth Hanna Judith Karin Vera Nora Rosa Amalie Frieda Elsbeth Linnea
Ottilie Wilma Svenja Tabea Gudrun Dorothea Leonie Mathilda Philippa Roswitha Xenia
Thekla""".split()
SURNAMES = """Miller Smith Weber Wagner Becker Hoffmann Klein Wolf Brown Neumann Baker
Braun Taylor Werner Krause Lehmann Walker Maier Cooper Winter Sommer Vogel Keller Harris
Berger Clarke Winkler Lorenz Albrecht Graham Simon Ludwig Brandt Kramer Haas Turner
Seidel Pohl Engel Horn Bergmann Thorne Busch Sauer Arnold Pfeiffer Hale Ashby Lindner
Quast""".split()
_ONSETS = """Brak Tors Vel Mor Ghal Quen Strud Zwin Plat Kor Fend Hask Ild Jarn Lum Nev
Orl Pesk Rud Skel Trav Ulm Wex Yarr""".split()
_MIDDLES = "en o as il un er a ov".split()
_ENDINGS = "berg ner sen ko wald mann vik row stein dal".split()
# In an order that mixes the parts: a tail of 240 names.
INVENTED = [
    _ONSETS[i % 24] + _MIDDLES[i // 24 % 8] + _ENDINGS[(i // 192 + i) % 10]
    for i in range(240)
]
# English and German names of towns; most are the same word.
TOWNS = [
    (name.partition("/")[0], name.partition("/")[2] or name)
    for name in """Berlin Hamburg London Munich/München Paris Vienna/Wien Leipzig
Cologne/Köln Bremen Dresden Rome/Rom Madrid Zurich/Zürich Oslo Prague/Prag Bonn Kiel
Lisbon/Lissabon Rostock Warsaw/Warschau Dublin Geneva/Genf Ulm Potsdam Bern Athens/Athen
Milan/Mailand Erfurt Passau Brussels/Brüssel Kassel Riga Naples/Neapel Stralsund Chicago
Boston Tokyo/Tokio Moscow/Moskau Cairo/Kairo Lima Toronto Oxford Sevenoaks Kempten
Travemark Oberquell Wexholm""".split()
]
