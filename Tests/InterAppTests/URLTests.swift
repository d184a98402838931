import InterApp
import SandboxModel
import SystemIO
import Testing

/// URLs: their parts, and the refusal of unsafe ones.
struct URLTests {
  @Test func partsFollowBothStandards() throws {
    let url = try URLText(
      reading: "Note://me:secret@Host:8080/a%20b;p=1/c?x=1&y=%41+b&z&=#part%20two")
    #expect(url.scheme == "Note" && url.authority == "me:secret@Host:8080")
    #expect(url.path == "/a%20b;p=1/c" && url.query == "x=1&y=%41+b&z&=")
    let received = url.received
    #expect(received.resourceSpecifier.bytes.starts(with: "//me:secret".utf8))
    #expect(received.user == "me" && received.password == "secret")
    #expect(received.host == "Host" && received.port == 8080)
    #expect(received.path == "/a b" && received.parameters == "p=1/c")
    #expect(received.fragment == "part%20two")
    #expect(received.queryItems.map(\.name) == ["x", "y", "z", ""])
    #expect(received.queryItems.map(\.value) == ["1", "A+b", nil, ""])
  }

  @Test func opaqueURLsHaveNoPathForTheApp() throws {
    let url = try URLText(reading: "mailto:a;b@example.com?subject=x")
    #expect(url.authority == nil && url.path == "a;b@example.com")
    #expect(url.received.path == nil && url.received.parameters == nil)
    #expect(url.received.resourceSpecifier == "a;b@example.com?subject=x")
    #expect(try URLText(reading: "a:").received.queryItems.isEmpty)
    #expect(try URLText(reading: "a://[::1]:80/x").received.host == "[::1]")
  }

  @Test(arguments: [
    ("", "empty"), ("nothing", "no scheme"), ("1a:x", "does not begin with a letter"),
    (":x", "scheme"), ("a b:x", "byte 2"), ("a:%", "byte 3"), ("a:%4", "hexadecimal"),
    ("a:%zz", "hexadecimal"), ("a:%00", "control character 0"),
    ("a:%0D%0a", "control character 13"),
    ("a:%7f", "control character 127"), ("a:x\ny", "control character 10"), ("a:é", "not ASCII"),
    ("a:<x>", "'<'"), ("a:\\x", "byte 3"), ("a://h:99999/", "not a port"),
    ("a://h:8x/", "not a port"),
    ("a://x@y@z/", "several '@'"), ("a://[::1/", "no ']'"), ("a://[::1]x/", "after ']'"),
    ("a://h]/", "brackets"), ("a://h[1]/", "brackets"),
  ]) func unsafeURLIsRefused(text: String, reason: String) {
    let error = #expect(throws: OperationError.self) { try URLText(reading: ByteString(text)) }
    #expect(error?.kind == .usage)
    #expect(error?.description.contains(reason) == true, "\(error?.description ?? "")")
  }

  @Test func overlongURLIsRefusedAtOnce() throws {
    let long = ByteString(Array("a:".utf8) + [UInt8](repeating: 0x62, count: 1 << 20))
    let error = #expect(throws: OperationError.self) { try URLText(reading: long) }
    #expect(error?.description.contains("1048578 bytes") == true)
    #expect((error?.description.utf8.count ?? 0) < 500, "the message does not repeat the URL")
    let longest = ByteString(Array("a:".utf8) + [UInt8](repeating: 0x62, count: 65_534))
    #expect(try URLText(reading: longest).path.count == 65_534)
  }

  @Test func remarksWarnTheReceiver() throws {
    #expect(try URLText(reading: "a://u:p@h/").remarks.count == 1)
    #expect(try URLText(reading: "a:%ff").remarks.count == 1)
    #expect(try URLText(reading: "a:x?k=1&%6b=2").remarks.count == 1)
    #expect(try URLText(reading: "a://h/x?k=1&l=2").remarks.isEmpty)
  }
}
