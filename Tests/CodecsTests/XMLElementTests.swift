import Codecs
import Testing

/// XML documents, including hostile ones.
struct XMLElementTests {
  private func read(
    _ text: String, _ change: (inout XMLElement.Limits) -> Void = { _ in }
  ) throws(CodecError) -> XMLElement {
    var limits = XMLElement.Limits()
    change(&limits)
    return try XMLElement(reading: Array(text.utf8), limits: limits)
  }

  @Test func elementsHaveTextAndChildren() throws {
    let root = try read(
      """
      \u{feff}<?xml version="1.0"?> <!-- a <b> -->
      <s:root xmlns:s="urn:x" a='>'><a>1 &lt;&#x41;&#66;&amp;</a> <a/>
        <b><![CDATA[<x>&amp;]]>\u{e9} </b ><c><!-- none --></c></s:root>
      <?end?>
      """)
    #expect(root.name == "root")
    #expect(root.text == "")
    #expect(root.children.map(\.name) == ["a", "a", "b", "c"])
    #expect(root.children("a").map(\.text) == ["1 <AB&", ""])
    #expect(root.text(of: "b") == "<x>&amp;\u{e9} ")
    #expect(root.child("c") == XMLElement("c"))
    #expect(root.child("d") == nil)
    #expect(try read("<a> </a>").text == " ")
  }

  @Test(arguments: [
    ("", CodecError.Kind.truncated), ("<a>", .truncated), ("<a", .truncated),
    ("<a><b></b>", .truncated),
    ("<a></b>", .malformed), ("</a>", .malformed), ("<a/><b/>", .malformed), ("x<a/>", .malformed),
    ("<a/>x", .malformed), ("<a>&x;</a>", .malformed), ("<a>&amp</a>", .malformed),
    ("<a>&#0;</a>", .malformed), ("<a>&#xd800;</a>", .malformed), ("<a>&#+1;</a>", .malformed),
    ("<a<b/>", .malformed), ("< a/>", .malformed), ("<a>\0</a>", .unsupported),
    ("<!DOCTYPE a><a/>", .unsupported),
    ("<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>", .unsupported), ("<a><![CDATA[x</a>", .truncated),
    ("<!-- <a/>", .truncated), ("<:/>", .malformed), ("&amp;", .malformed),
  ]) func damagedDocumentsAreRefused(text: String, kind: CodecError.Kind) {
    let error = #expect(throws: CodecError.self) { try read(text) }
    #expect(error?.kind == kind, "\(text): \(String(describing: error))")
    #expect(error?.format == .xml)
  }

  @Test func otherEncodingsAreRefused() {
    let error = #expect(throws: CodecError.self) {
      try XMLElement(reading: [0xff, 0xfe, 0x3c, 0x00, 0x61, 0x00])
    }
    #expect(error?.kind == .unsupported)
  }

  @Test func sizeDepthAndCountAreBounded() throws {
    let deep = String(repeating: "<a>", count: 40) + String(repeating: "</a>", count: 40)
    #expect(throws: CodecError.self) { try read(deep) }
    _ = try read(deep) { $0.depth = 40 }
    let endless = #expect(throws: CodecError.self) {
      try read(String(repeating: "<a>", count: 1_000_000))
    }
    #expect(endless?.kind == .limit)
    let wide = "<r>" + String(repeating: "<a/>", count: 100) + "</r>"
    #expect(throws: CodecError.self) { try read(wide) { $0.elements = 100 } }
    _ = try read(wide) { $0.elements = 101 }
    #expect(throws: CodecError.self) { try read(wide) { $0.bytes = 100 } }
  }

  @Test func textIsEscaped() throws {
    let text = "a<b>&\"'\r\n\t\u{e9}\u{1f600}"
    let escaped = try #require(XMLElement.escaped(text))
    #expect(try read("<a>\(escaped)</a>").text.unicodeScalars.elementsEqual(text.unicodeScalars))
    #expect(XMLElement.escaped("\u{1}") == nil)
    #expect(XMLElement.escaped("\u{ffff}") == nil)
  }
}
