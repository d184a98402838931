import ArchiveStore
import Codecs
import SystemIO

@testable import Interchange

extension Target {
  /// The lists of other backup programs.
  static let peerTargets = [Target(name: "peer-list", run: peerList)]

  /// A list of snapshots, as that of each program. What is accepted must be usable as an argument, a
  /// tag and a time.
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
}

/// The seeds of this target.
enum PeerSeeds {
  static var all: [(target: String, bytes: [UInt8])] {
    [restic, borg, kopia].map { ("peer-list", Array($0.utf8)) }
  }

  private static let id = String(repeating: "0a", count: 16)

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
