import ArchiveStore
import Codecs
import SystemIO

@testable import Interchange

extension Target {
  /// The lists of other backup programs.
  static let peerTargets = [
    Target(name: "peer-list", run: peerList),
    Target(name: "peer-entries", run: peerEntries),
  ]

  /// A list of snapshots in the form of each program. An accepted one must be usable as an
  /// argument, a tag and a time.
  @Sendable private static func peerList(_ bytes: [UInt8]) {
    for kind in PeerKind.allCases {
      guard let list = try? PeerSnapshot.list(kind, bytes) else { continue }
      require(list.faults.count <= PeerSnapshot.countLimit, "a list has too many faults")
      require(
        Set(list.snapshots.map(\.id)).count == list.snapshots.count, "two snapshots have one ID")
      for snapshot in list.snapshots { check(snapshot, of: kind) }
    }
  }

  private static func check(_ snapshot: PeerSnapshot, of kind: PeerKind) {
    require(PeerSnapshot.isID(snapshot.id.utf8), "an ID is not hexadecimal")
    require(
      Timestamp(rfc3339: snapshot.time.rfc3339) == snapshot.time, "a snapshot cannot have the time")
    require(
      (kind == .borg) != snapshot.name.isEmpty && !snapshot.name.utf8.contains(ByteString.slash),
      "an archive has an invalid name")
    let texts = [snapshot.name, snapshot.host, snapshot.user] + snapshot.paths + snapshot.tags
    require(
      texts.allSatisfy { text in text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } },
      "a text has control characters")
    require(
      snapshot.allTags(kind).last == snapshot.reference(kind), "the reference is not the last tag")
    require(snapshot.source(kind).utf8.count <= 1024, "a source is too long")
    require(snapshot.root?.permissions ?? 0 <= 0o7777, "a root has invalid permissions")
  }

  /// A list of the entries in a snapshot, after a byte with the program and the size of the
  /// portions in which it is delivered. An archive with the same entries gets their times from the
  /// list.
  @Sendable private static func peerEntries(_ bytes: [UInt8]) {
    guard let first = bytes.first else { return }
    let kind: PeerKind = first & 1 == 0 ? .restic : .borg
    let text = Array(bytes.dropFirst())
    var whole = PeerEntryReader(kind, output: Output(text, portion: text.count).read)
    var parts = PeerEntryReader(kind, output: Output(text, portion: Int(first >> 1) + 1).read)
    var entries: [PeerEntry] = []
    while let entry = whole.next() {
      require(parts.next() == entry, "the portions of a list change an entry")
      require(
        entry.modified.map { Timestamp(rfc3339: $0.rfc3339) == $0 } ?? true,
        "a snapshot cannot have the time")
      entries.append(entry)
    }
    require(parts.next() == nil && parts.fault == whole.fault, "the portions change the end")
    let reader = PeerEntryReader(kind, output: Output(text, portion: text.count).read)
    let list = PeerEntryList(kind, reader) { 0 }
    for entry in entries where entry.omittedType == nil {
      let path = ByteString(joining: ByteString(entry.path).components.filter { $0 != "." })
      require(list.time(of: path) == entry.modified, "an entry has another time")
    }
    list.finish()
    require(list.fault == whole.fault, "the list does not fit its own entries")
    let reported = entries.count { $0.omittedType != nil || $0.isDamaged }
    require(list.skipped.entryCount == reported, "an entry is not reported, or twice")
  }
}

/// The output of a program, in portions.
private final class Output {
  private var rest: ArraySlice<UInt8>
  private let portion: Int

  init(_ bytes: [UInt8], portion: Int) { (rest, self.portion) = (bytes[...], portion) }

  func read(into buffer: inout [UInt8]) -> Int {
    let part = rest.prefix(min(portion, buffer.count))
    buffer.replaceSubrange(0..<part.count, with: part)
    rest.removeFirst(part.count)
    return part.count
  }
}

/// The seeds of this target.
enum PeerSeeds {
  static var all: [(target: String, bytes: [UInt8])] {
    [restic, borg, kopia].map { ("peer-list", Array($0.utf8)) }
      + [("peer-entries", [6] + Array(resticEntries.utf8))]
      + [("peer-entries", [255] + Array(borgEntries.utf8))]
  }

  private static let id = String(repeating: "0a", count: 16)

  /// The lines of `restic ls --json`: the snapshot, then its nodes.
  private static let resticEntries = """
    {"time":"2024-05-06T07:08:09.5+02:00","paths":["/home"],"struct_type":"snapshot"}
    {"name":"home","type":"dir","path":"/home","mtime":"2024-05-06T07:08:09.123456789+02:00",\
    "struct_type":"node"}
    {"name":"pipe","type":"fifo","path":"/home/pipe","mtime":"2024-05-06T07:08:09Z",\
    "message_type":"node"}
    {"name":"\\u00e9","type":"file","path":"/home/\\u00e9","struct_type":"node"}

    """

  /// The lines of `borg list --json-lines`.
  private static let borgEntries = """
    {"type":"-","path":"home/a","healthy":false,"isomtime":"2024-05-06T07:08:09.000001"}
    {"type":"d","path":"home","healthy":true,"isomtime":"2024-05-06T07:08:09.000001"}
    """

  private static let restic =
    #"[{"id":"\#(id)","time":"2024-05-06T07:08:09.5+02:00","hostname":"h","username":"u","#
    + #""paths":["/home"],"tags":["a","restic:\#(id)"]}]"#

  private static let borg =
    #"{"archives":[{"id":"\#(id)","name":"home-2024-05-06","start":"2024-05-06T07:08:09.000001","#
    + #""hostname":"h","username":"u"}]}"#

  private static let kopia =
    #"[{"id":"\#(id)","startTime":"2024-05-06T07:08:09Z","tags":{"tag:env":"prod"},"#
    + #""source":{"host":"h","userName":"u","path":"/home"},"rootEntry":{"type":"d","#
    + #""mode":"0750","uid":1000,"mtime":"2024-05-06T07:08:09Z"}},{"id":"0","incomplete":"x"}]"#
}
