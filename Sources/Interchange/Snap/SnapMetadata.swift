package import ArchiveStore
package import Codecs
internal import DeviceDiscovery
internal import SandboxModel
package import SystemIO

/// The metadata of a snapshot of one snap, `meta.json` (snapd 2.63, client/snapshot.go).
package struct SnapMetadata: Hashable, Sendable {
  /// The name of the snap, with the key of a parallel installation: `editor`, `editor_work`.
  package var name: ByteString
  /// The revision: `42`, or `x1` for a snap that was not installed from the store.
  package var revision: String
  package var version: String
  /// The identifier in the store; nil for none.
  package var storeID: String?
  package var summary = ""
  /// The epoch, which snapd compares before it restores data; nil for the first one.
  package var epoch: JSON?
  /// The configuration (`snap get`); nil for none.
  package var configuration: JSON?
  /// The time at which the data was collected.
  package var time: Timestamp
  /// The SHA3-384 of each archive of the snapshot.
  package var sums: [SnapArchive: [UInt8]] = [:]
  /// The size of the archives in bytes.
  package var size: UInt64 = 0

  /// The maximum size of `meta.json` in bytes. A configuration has some kilobytes.
  package static let sizeLimit = 4 << 20
  /// The maximum number of archives: one for each user and one of the system.
  package static let archiveLimit = 1000
  /// The maximum size of a version in bytes: those of snaps have at most 32. A longer one counts as
  /// unknown.
  private static let versionLimit = 256
  /// The version for a snap whose version is unknown.
  private static let unknownVersion = "0"

  /// Creates metadata.
  package init(name: ByteString, revision: String, version: String?, time: Timestamp) {
    self.name = name
    self.revision = revision
    self.version = version ?? Self.unknownVersion
    self.time = time
  }
}

/// The reason why a part of a snapshot cannot be used, as a clause without its subject.
package struct SnapFault: Error, Hashable, Sendable {
  package let reason: String
}

// MARK: - Snapshots of this program

extension SnapMetadata {
  /// Returns the metadata of the snaps in a snapshot, by name: name, version and revision.
  package static func all(in snapshot: Snapshot) -> [ByteString: SnapMetadata] {
    var all: [ByteString: SnapMetadata] = [:]
    for app in snapshot.apps where isName(ByteString(app.identifier)) {
      let revisions = snapshot.device.containers.filter { isCurrent($0, of: app) }
        .compactMap(\.revision)
      let revision = (revisions + [app.build].compactMap(\.self)).first(where: isRevision)
      all[ByteString(app.identifier)] = SnapMetadata(
        name: ByteString(app.identifier), revision: revision ?? "x1", version: app.version,
        time: snapshot.time)
    }
    return all
  }

  /// Whether a container has the data of the current revision of a snap.
  private static func isCurrent(_ container: DeviceRecord.Container, of app: AppRecord) -> Bool {
    guard app.containers.contains(container.path) else { return false }
    switch try? LogicalPath(container.path).location?.container {
    case .revision, .systemRevision: return true
    default: return false
    }
  }

  /// Adds the members that only imported metadata has.
  package mutating func add(from imported: SnapMetadata) {
    (storeID, summary, epoch) = (imported.storeID, imported.summary, imported.epoch)
    configuration = imported.configuration
    if version == Self.unknownVersion { version = imported.version }
  }

  /// The logical path of the metadata that an import keeps.
  package var importedPath: ByteString {
    SnapPath.metadata.appending(ByteString(Array(name.bytes) + Array(".json".utf8)))
  }
}

// MARK: - Names

extension SnapMetadata {
  /// Whether bytes can be the name of a snap (snapd, snap/naming/validate.go): at most 40
  /// lower-case letters, digits and dashes, and optionally `_` with a key of at most 10 letters and
  /// digits.
  package static func isName(_ name: ByteString) -> Bool {
    let parts = name.bytes.split(
      separator: UInt8(ascii: "_"), maxSplits: 1, omittingEmptySubsequences: false)
    guard let base = parts.first, (2...40).contains(base.count), base.contains(where: isLetter),
      base.allSatisfy({ isLetter($0) || isDigit($0) || $0 == dash }), base.first != dash,
      base.last != dash
    else { return false }
    guard parts.count > 1 else { return true }
    return (1...10).contains(parts[1].count)
      && parts[1].allSatisfy { isLetter($0) || isDigit($0) }
  }

  /// Whether text can be a revision.
  package static func isRevision(_ text: String) -> Bool {
    text.utf8.count <= 20 && ByteString(text).isSnapRevision
  }

  private static let dash = UInt8(ascii: "-")
  private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte) }
  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

  /// The name of the snapshot's file in a set: `1_editor_2.0_42.zip` (snapd,
  /// overlord/snapshotstate/backend, `Filename`).
  package var fileName: ByteString {
    let plain = version.utf8.filter {
      Self.isLetter($0 | 0x20) || Self.isDigit($0) || ".+~-:".utf8.contains($0)
    }
    let shown = plain.isEmpty ? Array(Self.unknownVersion.utf8) : Array(plain.prefix(32))
    return ByteString(
      Array("1_".utf8) + Array(name.bytes) + Array("_".utf8) + shown
        + Array("_\(revision).zip".utf8)
    )
  }
}

// MARK: - Reading

extension SnapMetadata {
  /// Reads `meta.json`.
  ///
  /// - Throws: `SnapFault` if it is not such a file or names an impossible snap, revision or
  ///   archive.
  package init(parsing text: [UInt8]) throws(SnapFault) {
    let limits = JSON.Limits(bytes: Self.sizeLimit, depth: 64, values: 500_000)
    let json: JSON
    do throws(CodecError) {
      json = try JSON(parsing: text, limits: limits)
    } catch { throw SnapFault(reason: error.reason) }
    guard let name = json["snap"]?.string.map({ ByteString($0) }), Self.isName(name) else {
      throw SnapFault(reason: "it has no valid name of a snap")
    }
    let number = json["revision"]?.integer.map { String($0) }
    guard let revision = json["revision"]?.string ?? number, Self.isRevision(revision) else {
      throw SnapFault(reason: "it has no valid revision of the snap")
    }
    // After the offset from UTC is applied, the year may be one that cannot be written as text.
    guard let time = json["time"]?.string.flatMap({ Timestamp(rfc3339: $0) }),
      Timestamp(rfc3339: time.rfc3339) == time
    else { throw SnapFault(reason: "it has no valid time") }
    let version = json["version"]?.string.flatMap {
      $0.utf8.count <= Self.versionLimit ? $0 : nil
    }
    self.init(name: name, revision: revision, version: version, time: time)
    storeID = json["snap-id"]?.string
    summary = json["summary"]?.string ?? ""
    epoch = Self.epoch(json["epoch"])
    if let members = json["conf"]?.members, !members.isEmpty { configuration = json["conf"] }
    size = UInt64(clamping: json["size"]?.integer ?? 0)
    sums = try Self.sums(json["sha3-384"])
  }

  /// Returns an epoch that is not the first one, in any of its forms.
  private static func epoch(_ value: JSON?) -> JSON? {
    switch value {
    case .object, .string, .integer: value == firstEpoch ? nil : value
    default: nil
    }
  }

  /// The epoch of a snap that does not declare one (snapd, snap/epoch.go).
  private static let firstEpoch: JSON = ["read": [0], "write": [0]]

  private static func sums(_ value: JSON?) throws(SnapFault) -> [SnapArchive: [UInt8]] {
    guard let members = value?.members, !members.isEmpty else {
      throw SnapFault(reason: "it lists no archives")
    }
    guard members.count <= archiveLimit else {
      throw SnapFault(reason: "it lists more than \(archiveLimit) archives")
    }
    var sums: [SnapArchive: [UInt8]] = [:]
    for member in members {
      // snapd skips archives that it does not know, too.
      guard let archive = SnapArchive(member: ByteString(member.name)) else { continue }
      guard let sum = member.value.string.flatMap({ Hex.decode($0) }),
        sum.count == MessageDigest.Function.sha3x384.size
      else { throw SnapFault(reason: "its SHA3-384 of '\(archive.member)' is invalid") }
      sums[archive] = sum
    }
    if sums.isEmpty { throw SnapFault(reason: "it lists no archives that snapd knows") }
    return sums
  }
}

// MARK: - Writing

extension SnapMetadata {
  /// Returns a time in the form of RFC 3339. A time whose year has more than four digits, which
  /// snapd cannot read, becomes the start of 1970.
  static func text(of time: Timestamp) -> String {
    let text = time.rfc3339
    return Timestamp(rfc3339: text) == time ? text : Timestamp(seconds: 0).rfc3339
  }

  /// The text of `meta.json` with the members of snapd in its order.
  package var text: [UInt8] {
    var members: [JSON.Member] = [
      .init("set", .integer(1)), .init("time", .string(Self.text(of: time))),
      .init("snap", .string(name.utf8 ?? "")), .init("revision", .string(revision)),
    ]
    if let storeID { members.append(.init("snap-id", .string(storeID))) }
    members += [
      .init("epoch", epoch ?? Self.firstEpoch), .init("summary", .string(summary)),
      .init("version", .string(version)),
    ]
    if let configuration { members.append(.init("conf", configuration)) }
    let sums = sums.map { ($0.key.member, Hex.encode($0.value)) }.sorted { $0.0 < $1.0 }
    members += [
      .init("sha3-384", .object(sums.map { .init($0.0.utf8 ?? "", .string($0.1)) })),
      .init("size", .integer(Int64(clamping: size))),
    ]
    return JSON.object(members).compactBytes + [0x0a]
  }
}
