/// Sentences of plain words, deterministic for a seed.
enum SampleText {
  private static let words = """
    about after again against all always among and another any around because before below between \
    both bread bridge bright brown bring calm careful carry change city clear climb clock cloud coast \
    coffee cold copper corner country cover cross daily deep different early earth east empty evening \
    every family farm field first follow forest found garden gentle glass grain green ground harbour \
    heavy high hill honest house idea island journey keep kitchen ladder lake large late leaf learn \
    letter light little long market meadow measure melt middle mill moment morning mountain narrow \
    near never north notebook ocean often old open orange other paper patient people plain plan quiet \
    rain reach ready river road roof round salt sand season second shade ship short silver simple \
    sleep slow small snow soft some south spring square stone story street strong summer table thread \
    through time town train travel tree under until valley village walk warm water weather west wheel \
    while wide wind window winter without wood word work write year yellow young
    """.split(separator: " ").map(String.init)

  /// The content of a CACHEDIR.TAG, which marks its directory as a cache.
  static let cacheTag = """
    Signature: 8a477f597d28d172789f06886806bc55
    # This folder holds what can be made again: https://bford.info/cachedir/

    """

  /// Returns a title of two to four words.
  static func title(_ seed: String) -> String {
    var random = SampleRandom("title " + seed)
    return sentence(&random, words: 2 + random.below(3))
  }

  /// Returns sentences of about `bytes` bytes, with a blank line after every fifth and a final
  /// newline.
  static func text(_ seed: String, bytes: Int) -> String {
    var random = SampleRandom("text " + seed)
    var text = ""
    var count = 0
    while text.utf8.count < bytes {
      text += sentence(&random, words: 6 + random.below(9)) + "."
      count += 1
      text += count % 5 == 0 ? "\n\n" : " "
    }
    return text + sentence(&random, words: 5) + ".\n"
  }

  private static func sentence(_ random: inout SampleRandom, words count: Int) -> String {
    let chosen = (0..<count).map { _ in words[random.below(words.count)] }
    let joined = chosen.joined(separator: " ")
    return joined.prefix(1).uppercased() + joined.dropFirst()
  }
}
