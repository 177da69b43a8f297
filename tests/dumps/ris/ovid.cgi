<1. >
VN  - Ovid Technologies
DB  - Embase
UI  - 700000001
ST  - CONFERENCE ABSTRACT
TI  - Sleep of lighthouse keepers: A diary study.
OT  - Der Schlaf der Leuchtturmwärter.
SO  - Journal of Beams. Conference: 2nd Meeting on Beams. Spain. 12 (Supplement 3) (no pagination), 2018.
AU  - Beam L.
IN  - (Beam) University of the Rock, Rock
      (Beam) School of Fog, Rock
MH  - *sleep
MH  - adult
KW  - lighthouses; diaries
AB  - Background: Keepers sleep in pieces. 
Method(s): Forty keepers wrote diaries for a year. 
Result(s): The pieces add up to less than a night.
DO  - http://dx.doi.org/10.1234/beam.18
LG  - English
YR  - 2018
CR  - Copyright 2018 The Rock.

<2. >
VN  - Ovid Technologies
DB  - Embase
UI  - 700000002
TI  - Fog horns in the plural.
SO  - Journal of Beams. 13(2):4-9, 2019.
YR  - 2019

<3. >
VN  - Ovid Technologies
DB  - Ovid MEDLINE(R)
UI  - 31000003
TI  - Gulls that mistake the beam.
SO  - Beams & Birds. 4(1):1-3, 2017 Jan.
AB  - Gulls turn at the beam as at a wall. We dim the beam for a second in each minute and see them pass.
DO  - https://dx.doi.org/10.1234/gull.17
