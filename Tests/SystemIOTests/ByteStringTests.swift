import SystemIO
import TestSupport
import Testing

@Suite struct ByteStringTests {
  @Test func composedAndDecomposedNamesAreDifferent() throws {
    let composed: ByteString = "caf\u{e9}"
    let decomposed: ByteString = "cafe\u{301}"
    #expect(String(decoding: composed.bytes, as: UTF8.self) == "cafe\u{301}")
    #expect(composed != decomposed)
    #expect(Set([composed, decomposed]).count == 2)
    let temporary = try TemporaryFolder("names")
    try temporary.write("one", at: composed)
    try temporary.write("two", at: decomposed)
    #expect(try temporary.folder.names() == [decomposed, composed])
    #expect(try temporary.read(composed) == Array("one".utf8))
  }
}
