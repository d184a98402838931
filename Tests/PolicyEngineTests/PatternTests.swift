import Testing

@testable import PolicyEngine

struct PatternTests {
  @Test(arguments: [
    ("x/**", "x", true), ("x/**", "x/a", true), ("x/**", "x/a/b", true), ("x/**", "y", false),
    ("x/**", "", false), ("**", "", true), ("**", "a/b/c", true), ("a/**/b", "a/b", true),
    ("a/**/b", "a/x/b", true), ("a/**/b", "a/x/y/b", true), ("a/**/b", "a/b/c", false),
    ("**/b", "b", true), ("**/b", "a/b", true), ("**/b", "ab", false), ("*/**", "", false),
    ("*/**", "a", true), ("*/**", "a/b", true), ("a/**/**/b", "a/b", true),
    ("a/**/*/b", "a/b", false), ("a/**/*/b", "a/c/b", true),
  ])
  func doubleStarsMatchAnyNumberOfComponents(text: String, path: String, matches: Bool) throws {
    #expect(try pattern(text).matches(components(path)) == matches)
  }

  @Test(arguments: [
    ("*", ".hidden", true), ("*", "a/b", false), ("?", ".", false), ("?", "a", true),
    ("??", "a", false), ("*.plist.???????", "a.plist.x8Kq2Zb", true),
    ("*.plist.???????", "a.plist.x8Kq2Z", false), ("*.plist.???????", ".plist.1234567", true),
    ("*a*b*", "xaxxbx", true), ("*a*b*", "xbxxax", false), ("a*a", "a", false),
    ("a*a", "aa", true), ("*binarycookies_tmp*.dat", "Cookies.binarycookies_tmp_429_0.dat", true),
    ("*ab*ab", "ab", false), ("*ab*ab", "abab", true), ("*ab*ab", "aab", false),
  ])
  func starsAndQuestionMarksMatchWithinOneName(
    text: String, name: String, matches: Bool
  ) throws {
    let path = name.utf8.split(separator: UInt8(ascii: "/")).map { Array($0) }
    if name != "." { #expect(try pattern(text).matches(path) == matches) }
  }

  @Test(arguments: [
    ("[a-c]x", "bx", true), ("[a-c]x", "dx", false), ("[!a-c]x", "dx", true),
    ("[!a-c]x", "ax", false), ("[abc-]", "-", true), ("[\\]]", "]", true), ("[\\!a]", "!", true),
    ("[a!]", "!", true), ("[0-9a-f][0-9a-f]", "7f", true), ("[0-9a-f][0-9a-f]", "7g", false),
    ("[!a]", "", false),
  ])
  func setsMatchOneByte(text: String, name: String, matches: Bool) throws {
    #expect(try pattern(text).matches(components(name)) == matches)
  }

  @Test(arguments: [
    ("{a,b}/c", "b/c", true), ("{a,b}/c", "c/c", false), ("x{a,}y", "xy", true),
    ("x{a,bb}y{c,d}", "xbbyd", true), ("x{a,bb}y{c,d}", "xbyd", false), ("{*.a,b?}", "x.a", true),
    ("{a\\,b,c}", "a,b", true), ("a,b", "a,b", true),
  ])
  func bracesListAlternatives(text: String, path: String, matches: Bool) throws {
    #expect(try pattern(text).matches(components(path)) == matches)
  }

  @Test(arguments: ["\\*", "\\?", "\\[a\\]", "\\{a\\}", "\\\\", "\\a"])
  func backslashesEscapeSpecialCharacters(text: String) throws {
    let plain = text == "\\\\" ? "\\" : text.filter { $0 != "\\" }
    #expect(try pattern(text).matches(components(plain)))
    #expect(try !pattern(text).matches(components(plain + "x")))
  }

  @Test func matchingIsCaseSensitiveByDefault() throws {
    #expect(try !pattern("Documents").matches(components("documents")))
    let loose = try Pattern(parsing: "Doc[a-u]ments/É*", ignoringCase: true)
    #expect(loose.matches(components("dOCUMENTS/Éx")))
    #expect(!loose.matches(components("documents/éx")), "only for ASCII letters")
  }

  @Test func matchingIsByBytes() throws {
    #expect(try pattern("?").matches([[0xFF]]))
    #expect(try pattern("a*").matches([[0x61, 0xFF, 0xFE]]))
    #expect(try !pattern("?").matches([Array("é".utf8)]), "é has two bytes")
  }

  @Test func lettersMatchComposedAndDecomposed() throws {
    let composed = Array("caf\u{E9}.txt".utf8)
    let decomposed = Array("cafe\u{301}.txt".utf8)
    for text in ["caf\u{E9}.txt", "cafe\u{301}.txt", "caf\u{E9}*", "*fe\u{301}.txt"] {
      #expect(try pattern(text).matches([composed]), "\(text)")
      #expect(try pattern(text).matches([decomposed]), "\(text)")
    }
    #expect(try !pattern("cafe.txt").matches([composed]))
    let hangul = try pattern("한글")
    #expect(hangul.matches([Array("\u{1112}\u{1161}\u{11AB}\u{1100}\u{1173}\u{11AF}".utf8)]))
  }

  @Test func theFixedPrefixIsTheParentOfAllMatches() throws {
    #expect(try pattern("Library/Caches/**").fixedPrefix == components("Library/Caches"))
    #expect(try pattern("tmp/*.x").fixedPrefix == components("tmp"))
    #expect(try pattern("**/a").fixedPrefix == [])
    #expect(try pattern("{a,b}/c").fixedPrefix == [])
  }

  @Test(arguments: [
    ("", 0, "empty"), ("/a", 0, "begins with a slash"), ("a//b", 2, "a component is empty"),
    ("a/", 1, "ends with a slash"), ("a/../b", 2, "`..`"), ("./a", 0, "`.`"),
    ("a**", 1, "next to other"), ("a/x**y", 3, "next to other"), ("a/[b", 2, "`[` without `]`"),
    ("a/[b/c]", 2, "`[` without `]`"), ("[]", 0, "an empty set"), ("[z-a]", 1, "descending"),
    ("[aé]", 2, "non-ASCII"), ("a/{b,{c}}", 5, "within"), ("{a,b/c}", 0, "`{` without `}`"),
    ("{a,b", 0, "`{` without `}`"), ("a}", 1, "unmatched `}`"),
    ("é]", 1, "unmatched `]`"),
    ("a\\", 1, "backslash at the end"), ("a\\/b", 1, "backslash"), ("{,}", 0, "empty"),
    ("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", 40, "more than 256 alternatives"),
  ])
  func errorsHaveTheirPosition(text: String, offset: Int, problem: String) {
    #expect { try Pattern(parsing: text) } throws: { error in
      guard let error = error as? Pattern.SyntaxError else { return false }
      return error.offset == offset && error.problem.contains(problem) && !error.expected.isEmpty
    }
  }

  @Test(arguments: [
    ("**", "a/b", true), ("*/**", "a/b", true), ("a/**", "a/*/c", true), ("a/**", "**", false),
    ("a/*", "a/?", true), ("a/?", "a/*", false), ("*.txt", "a*.txt", true),
    ("{a,b}/**", "a/c/**", true), ("{a,b}/**", "{a,c}/**", false), ("**/b", "a/**/b", true),
    ("a/**/b", "**/b", false), ("[a-z]*", "[b-d]x", true), ("[b-d]*", "[a-z]x", false),
    ("**/x/**", "x", true), ("**/x/**", "**/x/**/y", true), ("*/*/**", "*/**", false),
    ("**", "**", true), ("?*/**", "*/**", true), ("*a*", "*ba*", true),
  ])
  func inclusionIsComputed(outer: String, inner: String, includes: Bool) throws {
    #expect(try pattern(outer).includes(pattern(inner)) == includes)
  }

  @Test func aPatternMayHaveAnyBytes() throws {
    let pattern = try Pattern(parsing: Pattern.Text([0x2a, 0xff], shown: "*\\xff"))
    #expect(pattern.matches([[0x61, 0xff]]) && !pattern.matches([[0x61, 0xfe]]))
    #expect(pattern.text == "*\\xff")
  }

  private func pattern(_ text: String) throws -> Pattern { try Pattern(parsing: text) }

  private func components(_ path: String) -> [[UInt8]] {
    path.utf8.split(separator: UInt8(ascii: "/")).map { Array($0) }
  }
}
