import Codecs
import InterApp
import SandboxModel
import SystemIO
import Testing

/// Predicates of activation rules: their grammar, their evaluation, and the refused ones.
struct PredicateTests {
  private static let png = ByteString("public.png")
  private static let pdf = ByteString("com.adobe.pdf")

  private func tree() throws -> TypeTree { TypeTree(system: try InterAppFixture.types()) }

  private func files(_ types: [ByteString]) throws -> SharedAttachments {
    SharedAttachments(
      try types.map { .file("file", of: try InterAppFixture.type($0)) })
  }

  private func holds(_ text: String, _ types: [ByteString] = [png]) throws -> Bool {
    try ActivationPredicate(reading: text).result(for: try files(types), in: try tree()).holds
  }

  /// Returns the fault in reading or evaluating a predicate.
  private func fault(_ text: String, _ types: [ByteString] = [png]) throws -> PredicateFault? {
    do {
      _ = try holds(text, types)
      return nil
    } catch let fault as PredicateFault { return fault }
  }

  private static let each = """
    SUBQUERY (
        extensionItems, $extensionItem,
        SUBQUERY (
            $extensionItem.attachments, $attachment,
            ANY $attachment.registeredTypeIdentifiers UTI-CONFORMS-TO "com.adobe.pdf" ||
            ANY $attachment.registeredTypeIdentifiers UTI-CONFORMS-TO "public.image"
        ).@count == $extensionItem.attachments.@count
    ).@count == 1
    """

  @Test func subqueriesCountAttachmentsByConformance() throws {
    #expect(try holds(Self.each, [Self.png, Self.pdf]))
    #expect(try !holds(Self.each, [Self.png, "public.mp3"]))
    let result = try ActivationPredicate(reading: Self.each).result(
      for: try files([Self.png, "public.mp3"]), in: try tree())
    #expect(result.unmatched == [1])
    #expect(result.reasons.first?.contains("0 == 1 (column 1)") == true, "\(result.reasons)")
  }

  /// A rule is a text from an app, so it must not break a line or control the terminal.
  @Test func reasonsAreEscaped() throws {
    let result = try ActivationPredicate(reading: "'x\u{1b}[31m\u{202e}\u{7}' == 'y\\'\\n'").result(
      for: try files([Self.png]), in: try tree())
    let reason = try #require(result.reasons.first)
    let scalars = reason.unicodeScalars
    #expect(scalars.allSatisfy { $0.value >= 0x20 && $0 != "\u{202e}" }, "\(reason)")
    #expect(reason.contains("\\x1b[31m\\u{202e}\\x07") && reason.contains("'y\\'\\n'"), "\(reason)")
  }

  @Test(arguments: [
    ("TRUEPREDICATE", true), ("FALSEPREDICATE", false), ("NOT FALSEPREDICATE", true),
    ("TRUEPREDICATE or FALSEPREDICATE and FALSEPREDICATE", true),
    ("(TRUEPREDICATE OR FALSEPREDICATE) AND FALSEPREDICATE", false),
    ("extensionItems.@count = 1", true), ("extensionItems[SIZE] => 1", true),
    ("count(extensionItems) <> 1", false),
    ("SELF.extensionItems[FIRST].attachments.@count < 2", true),
    (
      "ALL extensionItems[0].attachments[LAST].registeredTypeIdentifiers BEGINSWITH 'public.'", true
    ),
    (
      "NONE extensionItems[0].attachments[0].registeredTypeIdentifiers UTI-EQUALS 'PUBLIC.PNG'",
      false
    ),
    ("ANY extensionItems[0].attachments[0].registeredTypeIdentifiers ENDSWITH[c] 'PNG'", true),
    ("extensionItems[0].attachments[0].registeredTypeIdentifiers CONTAINS 'public.png'", true),
    ("'public.png' IN extensionItems[0].attachments[0].registeredTypeIdentifiers", true),
    ("'a.b' LIKE '?.*' && !('x' LIKE 'y*')", true), ("2 BETWEEN {1, 1 + 2 * 3}", true),
    ("-1 + 2 == 4 / 4 - 0", true), ("NULL == nil", true), ("nil < 1", false),
    ("YES == 1 AND 'a' != 'b'", true), ("{1, 2}.@count == 2", true),
    ("'public.png' uti-conforms-to 'public.image'", true),
    ("'public.png' UTI-CONFORMS-TO 'public.movie'", false), ("'h\\'x' CONTAINS \"'\"", true),
  ])
  func grammarIsThatOfTheGuide(text: String, expected: Bool) throws {
    #expect(try holds(text) == expected)
  }

  @Test(arguments: [
    ("", "column 1"), ("TRUEPREDICATE)", "column 14"), ("1 + 2", "column 1"),
    ("extensionItems.@sum.x == 1", "column 16"), ("'a' MATCHES '.*'", "column 5"),
    ("uppercase('a') == 'A'", "column 1"), ("x == %@", "column 6"),
    ("CAST('1', 'x') == 1", "column 1"),
    ("$item.attachments.@count == 1", "column 1"), ("extensionItems.title == 'x'", "column 16"),
    ("extensionItems == 'open", "column 19"), ("TRUEPREDICATE AND\n  bad == 1", "line 2, column 3"),
    ("ANY 'x' == 'x'", "column 1"), ("1 / 0 == 1", "column 3"), ("'ä' ==[d] 'a'", "column 5"),
    ("'é' ! 'x'", "column 5"), ("'a' ==[z] 'a'", "column 7"), ("1 < 'a'", "column 3"),
  ])
  func otherTextIsRefusedWithItsPosition(text: String, position: String) throws {
    let fault = try fault(text)
    #expect(fault?.position == position, "\(String(describing: fault))")
  }

  @Test func nestingAndLengthAreLimited() throws {
    for open in ["(", "NOT ", "-", "{", "SUBQUERY(", "x["] {
      let text = String(repeating: open, count: 7000)
      #expect(try fault(text)?.reason.contains("more than 100 levels deep") == true, "\(open)")
    }
    let nested =
      String(repeating: "(", count: 10_000) + "TRUEPREDICATE"
      + String(repeating: ")", count: 10_000)
    let fault = try #require(try fault(nested))
    #expect(fault.reason == "it is nested more than 100 levels deep" && fault.column == 102)
    let allowed =
      String(repeating: "(", count: 99) + "TRUEPREDICATE" + String(repeating: ")", count: 99)
    #expect(try holds(allowed))
    let long = String(repeating: "TRUEPREDICATE OR ", count: 4000) + "TRUEPREDICATE"
    #expect(try self.fault(long)?.reason.contains("more than the limit of 65536") == true)
    #expect(try holds(String(repeating: "FALSEPREDICATE OR ", count: 3500) + "TRUEPREDICATE"))
  }

  @Test func evaluationIsLimited() throws {
    let list = "extensionItems[0].attachments"
    let text = (0..<6).reduce("TRUEPREDICATE") { inner, number in
      "SUBQUERY(\(list), $v\(number), \(inner)).@count > 0"
    }
    let types = [ByteString](repeating: Self.png, count: 100)
    #expect(try fault(text, types)?.reason.contains("more than 1000000 steps") == true)
  }

  @Test func filesAreAlsoURLs() throws {
    let rule =
      "SUBQUERY(extensionItems, $i, SUBQUERY($i.attachments, $a, ANY "
      + "$a.registeredTypeIdentifiers UTI-CONFORMS-TO 'public.url').@count > 0).@count > 0"
    #expect(try holds(rule), "the file's own URL")
    let text = SharedAttachments([.text("x")])
    #expect(try !ActivationPredicate(reading: rule).result(for: text, in: try tree()).holds)
  }
}
