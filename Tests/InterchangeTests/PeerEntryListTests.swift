import ArchiveStore
import Codecs
import SystemIO
import Testing

@testable import Interchange

/// The lists of entries that restic and borg print, as they arrive. (CommandTests.ImportPeerTests
/// runs programs that print them.)
struct PeerEntryListTests {
  /// Returns a reader of a text that is delivered in portions.
  private func reader(
    _ kind: PeerKind, _ text: String, portion: Int = .max
  ) -> PeerEntryReader {
    var rest = Array(text.utf8)[...]
    return PeerEntryReader(kind) { buffer in
      let part = rest.prefix(min(portion, buffer.count))
      buffer.replaceSubrange(0..<part.count, with: part)
      rest.removeFirst(part.count)
      return part.count
    }
  }

  /// Returns all entries, and the fault that ended them.
  private func entries(
    _ kind: PeerKind, _ text: String, portion: Int = .max
  ) -> ([PeerEntry], fault: String?) {
    var reader = reader(kind, text, portion: portion)
    var entries: [PeerEntry] = []
    while let entry = reader.next() { entries.append(entry) }
    return (entries, reader.fault)
  }

  private func node(_ path: String, _ type: String = "file", form: String = "struct_type") -> String
  {
    #"{"path":"\#(path)","type":"\#(type)","mtime":"2024-01-02T03:04:05.5Z","\#(form)":"node"}"#
  }

  private let time = Timestamp(rfc3339: "2024-01-02T03:04:05.5Z")

  @Test(arguments: [1, 2, 7, 100, .max])
  func linesArriveInPortions(portion: Int) {
    let text = """
      {"struct_type":"snapshot","paths":["/a"]}
      \(node("/a", "dir"))

      \(node("/a/p", "fifo", form: "message_type"))
      \(node("/a/\\u00e9"))
      """
    let (found, fault) = entries(.restic, text, portion: portion)
    #expect(fault == nil)
    #expect(
      found == [
        PeerEntry(path: "/a", modified: time),
        PeerEntry(path: "/a/p", modified: time, omittedType: "fifo"),
        PeerEntry(path: "/a/\u{e9}", modified: time),
      ])
  }

  /// borg prints local times without an offset; with `TZ` set, they are in UTC.
  @Test func linesOfBorgHaveTimesAndDamage() {
    let text = """
      {"path":"a","isomtime":"2024-01-02T03:04:05.500000","healthy":true}
      {"path":"b","isomtime":"yesterday","healthy":false}
      """
    #expect(
      entries(.borg, text).0 == [
        PeerEntry(path: "a", modified: time), PeerEntry(path: "b", modified: nil, isDamaged: true),
      ])
  }

  @Test(arguments: [
    ("{", "not JSON"), ("x\n", "not JSON"), (#"{"path":"/a"#, "not JSON"),
    (String(repeating: "[", count: 60_000), "not JSON"),
    (String(repeating: " ", count: 70_000), "more than 65536 bytes"),
  ])
  func aBrokenLineEndsTheList(line: String, reason: String) {
    let (found, fault) = entries(.restic, node("/a") + "\n" + line)
    #expect(found.count == 1)
    #expect(fault?.contains(reason) == true, "\(fault ?? "none")")
    // Later entries in the archive keep their own times.
    let list = PeerEntryList(.restic, reader(.restic, node("/a") + "\n" + line)) { 0 }
    #expect(list.time(of: "a") == time && list.time(of: "b") == nil)
    list.finish()
    #expect(list.fault == fault && list.skipped.isEmpty)
  }

  /// A type is a text from the repository: an unknown one is not printed.
  @Test(arguments: ["irregular", "\\u001b[31m", ""])
  func unknownTypesAreNotPrinted(type: String) {
    let list = PeerEntryList(.restic, reader(.restic, node("/a", type))) { 0 }
    list.finish()
    #expect(
      list.skipped.listed.map(\.reason) == ["restic writes no entry of another type into archives"])
  }

  @Test func aListThatDiffersIsNotUsed() {
    let text = node("/a") + "\n" + node("/c")
    let list = PeerEntryList(.restic, reader(.restic, text)) { 0 }
    #expect(list.time(of: "a") == time && list.time(of: "b") == nil && list.time(of: "c") == nil)
    #expect(list.fault == "the list of entries has '/c' instead of 'b'")
    let short = PeerEntryList(.restic, reader(.restic, text)) { 0 }
    #expect(short.time(of: "a") == time && short.time(of: "c") == time)
    #expect(short.time(of: "d") == nil)
    #expect(short.fault == "the list of entries is shorter than the archive")
  }

  /// restic writes a special file at the top of a snapshot as an empty file.
  @Test func specialFilesInTheArchiveAreSkipped() {
    let text = [
      node("/a", "fifo"), node("/b", "socket"), node("/\\u00e9", "fifo"), node("/f"),
      node("/g", "fifo"),
    ].joined(separator: "\n")
    let list = PeerEntryList(.restic, reader(.restic, text)) { 0 }
    #expect(list.isSpecialFile("a") && list.isSpecialFile("\u{e9}"))
    #expect(!list.isSpecialFile("f") && list.time(of: "f") == time)
    list.finish()
    #expect(list.fault == nil)
    #expect(list.skipped.listed.map { "\($0.path)" } == ["a", "b", "\u{e9}", "g"])
  }

  /// Entries that are only in the list are reported, even after the last one of the archive.
  @Test func entriesThatTheArchiveLacksAreNamed() {
    let text = [node("/a"), node("/b", "socket"), node("/c"), node("/d", "fifo"), node("/e")]
      .joined(separator: "\n")
    let list = PeerEntryList(.restic, reader(.restic, text)) { 0 }
    #expect(list.time(of: "a") == time && list.time(of: "c") == time)
    list.finish()
    #expect(
      list.skipped.listed.map { "\($0.path): \($0.reason)" } == [
        "b: restic writes no socket into archives", "d: restic writes no fifo into archives",
        "e: restic did not write it into the archive",
      ])
    #expect(list.fault == nil)
    let failed = PeerEntryList(.restic, reader(.restic, node("/a"))) { 3 }
    #expect(failed.time(of: "a") == time)
    failed.finish()
    #expect(failed.fault == "its list ended with status 3")
  }
}
