import Testing

@testable import Codecs

/// The markup of XML documents, as seen by the readers of several formats.
struct XMLScannerTests {
  /// Returns the tokens of a document, including the attributes of tags.
  private func scan(_ text: String) throws(CodecError) -> [String] {
    var scanner = try XMLScanner(Array(text.utf8), in: .androidXML)
    var (tokens, depth): ([String], Int) = ([], 0)
    while let token = try scanner.next(inElement: depth > 0) {
      switch token {
      case .text(let range): tokens.append(String(decoding: scanner.bytes[range], as: UTF8.self))
      case .character(let character): tokens.append("&\(character)")
      case .end(let name):
        depth -= 1
        tokens.append("</\(name)>")
      case .start(let name):
        tokens.append("<\(name)")
        var isEmpty: Bool?
        while isEmpty == nil {
          switch try scanner.nextPart() {
          case .attribute(let attribute): tokens.append("\(attribute.name)='\(attribute.value)'")
          case .end(let end): isEmpty = end
          }
        }
        if isEmpty == false { depth += 1 }
      }
    }
    return tokens
  }

  @Test func tokensAreInTheOrderOfTheDocument() throws {
    let text = """
      \u{feff}<?xml version="1.0"?> <!-- a <b> -->
      <s:a x='1' y = "&lt;\t&#9;'">1&amp;2<![CDATA[<x>&y;]]><b/></s:a >
      <!-- end -->
      """
    #expect(
      try scan(text) == [
        "<s:a", "x='1'", "y='< \t''", "1", "&&", "2", "<x>&y;", "<b", "</s:a>",
      ])
  }

  @Test(arguments: [
    ("x<a/>", "text is outside an element", 1), ("<a/> &amp;", "text is outside an element", 6),
    ("<![CDATA[x]]><a/>", "text is outside an element", 1),
    ("<a>&copy;</a>", "unknown entity 'copy'", 4), ("<a>b & c</a>", "'&' does not begin", 6),
    ("<a b='&#0;'/>", "unknown entity '#0'", 7), ("<a b='1'c='2'/>", "an attribute is invalid", 9),
    ("<a b/>", "an attribute has no value", 5), ("<a b=c/>", "a value has no quotes", 6),
    ("<a b='<'/>", "a value contains '<'", 7), ("<!DOCTYPE a><a/>", "a document type", 1),
    ("< a/>", "a name is missing", 2), ("<a></a x>", "a tag is not terminated", 4),
  ]) func invalidMarkupIsNamedWithItsColumn(text: String, reason: String, column: Int) {
    let error = #expect(throws: CodecError.self) { try scan(text) }
    #expect(error?.reason.contains(reason) == true, "\(text): \(String(describing: error))")
    #expect(error?.position == .mark(Mark(line: 1, column: column)), "\(text)")
    #expect(error?.format == .androidXML)
  }

  @Test(arguments: ["<a", "<a b='1", "<a></a", "<!-- a", "<? a", "<a><![CDATA[b"])
  func truncatedMarkupIsNamedAsSuch(text: String) {
    let error = #expect(throws: CodecError.self) { try scan(text) }
    #expect(error?.kind == .truncated, "\(text): \(String(describing: error))")
  }
}
