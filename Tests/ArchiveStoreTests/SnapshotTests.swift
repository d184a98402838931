import Codecs
import SystemIO
import Testing

@testable import ArchiveStore

struct SnapshotTests {
  private static let digest = Blake2b.hash(Array("x".utf8))

  /// A snapshot with all members.
  private static var full: Snapshot {
    var snapshot = Snapshot(
      repository: digest, source: digest, sequence: 7,
      time: Timestamp(seconds: 1_793_529_000, nanoseconds: 120_000_000), host: "h\u{fc}tte",
      user: "eve",
      device: DeviceRecord(
        identity: "id", platform: "ios", layout: "coresimulator", root: ByteString([0x2f, 0xff]),
        osVersion: "17.2",
        containers: [
          DeviceRecord.Container(path: "apps/a.b/data", uuid: "U-1", realPath: "/x/U-1")
        ]), scope: .apps(["a.b"]), reason: .preUpdate,
      policy: PolicyRecord(name: "ios", digest: digest), tree: TreeReference(digest),
      program: "sandboxctl 1")
    snapshot.apps = [
      AppRecord(
        identifier: "a.b", name: "A", version: "1.2", build: "3", containers: ["apps/a.b/data"])
    ]
    snapshot.parent = digest
    snapshot.tags = ["t", "\""]
    snapshot.totals.entries = 10
    snapshot.totals.files = 9
    snapshot.totals.bytes = 8
    snapshot.totals.stored = 7
    snapshot.totals.classes = [Totals.Class(name: "user-data", files: 1, bytes: 2)]
    snapshot.classes = [ClassRun(path: "apps/a.b/data/Documents", name: "user-data")]
    snapshot.users = [NameRecord(id: 1000, name: "eve")]
    snapshot.groups = [NameRecord(id: 100, name: "users")]
    snapshot.excluded = [Exclusion(path: "apps/a.b/data/tmp", rule: "tmp", files: 3, bytes: 4)]
    snapshot.unreadable = [PathNote(path: ByteString([0xfe]), note: "permission denied")]
    snapshot.warnings = [PathNote(path: "w", note: "changed")]
    snapshot.mounts = ["m", ByteString([0xfd])]
    snapshot.databases = [DatabaseRecord(path: "d.db", how: "by watching")]
    snapshot.durationMilliseconds = 1234
    snapshot.original = Snapshot.Original(repository: digest, id: digest)
    snapshot.unknown = [JSON.Member("later", ["a": 1])]
    return snapshot
  }

  private func read(_ bytes: [UInt8]) throws -> Snapshot {
    try StoredSnapshot(id: Self.digest, content: bytes, object: "a snapshot").snapshot
  }

  @Test func writtenSnapshotIsReadBack() throws {
    #expect(try read(Self.full.encode()) == Self.full)
    #expect(try read(Self.full.encode()).encode() == Self.full.encode())
  }

  @Test func headHasTheDocumentedLine() {
    let snapshot = Snapshot(
      repository: Self.digest, source: Self.digest, sequence: 1,
      time: Timestamp(seconds: 1_793_529_000), host: "h", user: "u",
      device: DeviceRecord(identity: "i", platform: "linux", layout: "folder", root: "/r"),
      policy: PolicyRecord(name: "everything", digest: Self.digest),
      tree: TreeReference(Self.digest), program: "p")
    let x = Self.digest.hex
    let expected =
      #"{"format":"sandboxctl-snapshot","version":1,"repository":"\#(x)","source":"\#(x)","#
      + #""sequence":1,"time":"2026-11-01T10:30:00Z","host":"h","user":"u","reason":"manual","#
      + #""tree":"\#(x)","policy":{"name":"everything","digest":"\#(x)"},"program":"p","#
      + #""duration_ms":0,"#
      + #""totals":{"entries":0,"files":0,"bytes":0,"stored":0,"classes":[]},"#
      + #""scope":{"kind":"device"},"#
      + #""device":{"identity":"i","platform":"linux","layout":"folder","root":"/r"}}"#
    #expect(String(decoding: snapshot.encode(), as: UTF8.self) == expected + "\n")
  }

  @Test func headIsInTheFirst4KiB() throws {
    var snapshot = Self.full
    snapshot.device.containers = (0..<500).map {
      DeviceRecord.Container(
        path: ByteString("apps/org.example.\($0)/data"), realPath: ByteString("/x/\($0)"))
    }
    snapshot.apps = (0..<500).map { AppRecord(identifier: "org.example.\($0)") }
    snapshot.classes = (0..<5000).map { ClassRun(path: ByteString("apps/\($0)"), name: "cache") }
    let text = String(decoding: snapshot.encode().prefix(4096), as: UTF8.self)
    for name in [
      "repository", "source", "sequence", "time", "host", "user", "reason", "tree", "parent",
      "policy", "program", "duration_ms", "original", "totals", "scope", "tags", "device",
      "identity", "platform", "layout", "root", "os_version", "containers",
    ] {
      #expect(text.contains("\"\(name)\":"), "\(name)")
    }
    let names = try #require(snapshot.json.members).map(\.name)
    let device = try #require(names.firstIndex(of: "device"))
    #expect(names[(device + 1)...].first == "apps")
    #expect(
      Set(names[(device + 2)...]) == [
        "classes", "users", "groups", "left_out", "unreadable", "warnings", "mounts", "databases",
        "later",
      ])
  }

  /// Older snapshots have their members in another order.
  @Test func membersMayComeInAnyOrder() throws {
    let members = try #require(Self.full.json.members)
    let line = JSON.object(members.reversed()).compactBytes + [UInt8(ascii: "\n")]
    #expect(try read(line) == Self.full)
    let id = Blake2b.hash(line)
    let head = try SnapshotHead(id: id, content: line, object: "a snapshot")
    #expect(head == SnapshotHead(StoredSnapshot(id: id, snapshot: Self.full)))
  }

  @Test func onlyTheFirstLineIsRead() throws {
    #expect(try read(Self.full.encode() + Array("a signature".utf8)) == Self.full)
  }

  @Test func damageIsNamed() {
    let bytes = Self.full.encode()
    for text in ["", "{}", "[]", "{", #"{"format":"other"}"#] {
      #expect(storeError { try read(Array(text.utf8)) }?.code == .damaged, "\(text)")
    }
    let text = String(decoding: bytes, as: UTF8.self)
    for (member, wrong) in [
      (#""sequence":7"#, #""sequence":-7"#), (#""host":"h\#u{fc}tte""#, #""host":5"#),
      (#""time":"2026"#, #""time":"x026"#), (#""kind":"apps""#, #""kind":"none""#),
      (#""id":1000"#, #""id":5000000000"#), (#""root_b64":"L/8=""#, #""root_b64":"L/8""#),
    ] {
      #expect(text.contains(member), "\(member)")
      let changed = text.replacingFirst(member, with: wrong)
      let error = storeError { try read(Array(changed.utf8)) }
      #expect(error?.code == .damaged, "\(wrong)")
      #expect(error?.reason.contains("member") == true, "\(wrong)")
    }
  }

  /// Members that a restore needs are required, and all others are optional
  /// (docs/repository-format.md, "Snapshot").
  @Test func optionalMembersMayBeMissing() throws {
    let all = try JSON(parsing: Array(Self.full.encode().dropLast())).members ?? []
    let needed: Set = ["format", "version", "repository", "time", "tree"]
    #expect(needed.isSubset(of: Set(all.map(\.name))))
    for missing in all.map(\.name) {
      let line = JSON.object(all.filter { $0.name != missing }).compact
      let found = Result { try read(Array((line + "\n").utf8)) }
      #expect((try? found.get()) != nil || needed.contains(missing), "\(missing)")
      if needed.contains(missing) {
        #expect(throws: StoreError.self, "\(missing)") { try found.get() }
      }
    }
    let least = JSON.object(all.filter { needed.contains($0.name) }).compact
    let few = try read(Array((least + "\n").utf8))
    #expect(few.tree == Self.full.tree && few.time == Self.full.time)
    #expect(few.host.isEmpty && few.sequence == 0 && few.scope == .device && few.totals.files == 0)
    // The parts of these optional members are optional as well.
    let empty = all.map { member in
      ["device", "scope", "policy", "totals"].contains(member.name)
        ? JSON.Member(member.name, .object([])) : member
    }
    _ = try read(Array((JSON.object(empty).compact + "\n").utf8))
  }

  @Test func version2IsRefused() {
    let text = String(decoding: Self.full.encode(), as: UTF8.self)
    let changed = text.replacingFirst(#""version":1"#, with: #""version":2"#)
    let error = storeError { try read(Array(changed.utf8)) }
    #expect(error?.code == .unsupported)
    #expect(error?.reason.contains("version 2") == true)
  }
}

extension String {
  fileprivate func replacingFirst(_ part: String, with other: String) -> String {
    guard let range = self.firstRange(of: part) else { return self }
    return replacingCharacters(in: range, with: other)
  }

  private func firstRange(of part: String) -> Range<Index>? {
    var at = startIndex
    while at < endIndex {
      if self[at...].hasPrefix(part) { return at..<index(at, offsetBy: part.count) }
      at = index(after: at)
    }
    return nil
  }

  private func replacingCharacters(in range: Range<Index>, with other: String) -> String {
    self[..<range.lowerBound] + other + self[range.upperBound...]
  }
}

struct TextCodingTests {
  @Test(
    arguments: [
      (0, 0, "1970-01-01T00:00:00Z"), (-1, 5, "1969-12-31T23:59:59.000000005Z"),
      (951_782_400, 0, "2000-02-29T00:00:00Z"), (4_107_542_399, 0, "2100-02-28T23:59:59Z"),
      (1_793_529_000, 120_000_000, "2026-11-01T10:30:00.120000000Z"),
    ] as [(Int64, UInt32, String)])
  func timesAreReadAndWritten(seconds: Int64, nanoseconds: UInt32, text: String) {
    let time = Timestamp(seconds: seconds, nanoseconds: nanoseconds)
    #expect(time.rfc3339 == text)
    #expect(Timestamp(rfc3339: text) == time)
  }

  @Test func timesWithOffsetsAreRead() {
    let time = Timestamp(rfc3339: "2026-11-01T12:30:00.12+02:00")
    #expect(time == Timestamp(seconds: 1_793_529_000, nanoseconds: 120_000_000))
    #expect(Timestamp(rfc3339: "2026-11-01t05:30:00-05:00")?.seconds == 1_793_529_000)
    for text in [
      "", "2026-11-01", "2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z", "2026-11-01T24:00:00Z",
      "2026-11-01T00:00:00", "2026-11-01T00:00:00.Z", "2026-11-01T00:00:00Zx",
      "2026-11-01 00:00:00Z", "2026-11-01T00:00:00+25:00",
    ] {
      #expect(Timestamp(rfc3339: text) == nil, "\(text)")
    }
  }
}
