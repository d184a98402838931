import Codecs
import SandboxModel
import SystemIO

@testable import Interchange

extension Target {
  /// Snapshots of snapd, and the property lists that name an app.
  static let appDataTargets = [
    Target(name: "snap", run: snap),
    Target(name: "snap-metadata", run: snapMetadata),
    Target(name: "app-identity", run: appIdentity),
    Target(name: "package-data", run: packageData),
  ]

  /// A whole snapshot or export. Entries must have paths below the containers of a snap.
  @Sendable private static func snap(_ bytes: [UInt8]) {
    guard let descriptor = try? Descriptor.inMemory(bytes),
      let file = try? ArchiveFile(descriptor, name: "snapshot"),
      var source = try? SnapSource.open(file, user: "ada")
    else { return }
    var buffer = [UInt8](repeating: 0, count: 4096)
    var count = 0
    do {
      while let entry = try source.next() {
        count += 1
        require(PathComponents.fault(in: entry.path) == nil, "an entry has an invalid path")
        require(
          ["apps", "folders"].contains(entry.path.first) && entry.path.count >= 3,
          "an entry is above the containers")
        if case .file = entry.kind {
          var portions = 64
          while portions > 0, try buffer.withUnsafeMutableBytes({ try source.read(into: $0) }) > 0 {
            portions -= 1
          }
        }
      }
    } catch {}
    require(count <= 1_000_000, "a snapshot has too many entries")
  }

  /// Metadata. Accepted metadata must be the same after writing it.
  @Sendable private static func snapMetadata(_ bytes: [UInt8]) {
    guard let metadata = try? SnapMetadata(parsing: bytes) else { return }
    require(SnapMetadata.isName(metadata.name), "metadata with an invalid name is accepted")
    require(metadata.fileName.nameFault == nil, "the name of a snapshot's file is invalid")
    require(
      metadata.sums.allSatisfy {
        $0.value.count == 48 && SnapArchive(member: $0.key.member) == $0.key
      },
      "metadata with an invalid sum is accepted")
    guard let again = try? SnapMetadata(parsing: metadata.text) else {
      fatalError("accepted metadata cannot be read after it is written")
    }
    require(again == metadata, "metadata changed when it was written and read again")
  }

  /// The property list of an app. An accepted one must be the same in AppDataInfo.plist.
  @Sendable private static func appIdentity(_ bytes: [UInt8]) {
    guard let app = AppIdentity(parsing: bytes) else { return }
    require(app.identifier.nameFault == nil, "an identifier that is no name is accepted")
    guard let written = try? app.appDataInfo.binary(), let again = AppIdentity(parsing: written)
    else { fatalError("an accepted app cannot be read after it is written") }
    require(again == app, "an app changed when it was written and read again")
  }

  /// A package with an app's data. Entries must be in the containers of the app, or in those of
  /// groups.
  @Sendable private static func packageData(_ bytes: [UInt8]) {
    guard let descriptor = try? Descriptor.inMemory(bytes),
      let file = try? ArchiveFile(descriptor, name: "fuzz.ipa"),
      var source = try? PackageDataSource(file)
    else { return }
    let name = source.app.name
    let containers = [LogicalContainer.bundle(name), .data(name)].map(\.prefix.components)
    var buffer = [UInt8](repeating: 0, count: 4096)
    var (entries, total) = (0, 0)
    while entries < 1000, total < 4 << 20, let entry = try? source.next() {
      entries += 1
      require(PathComponents.fault(in: entry.path) == nil, "an entry has an invalid path")
      let isInGroup = entry.path.first == "groups" && entry.path.count >= 2
      require(
        isInGroup || containers.contains { entry.path.starts(with: $0) },
        "an entry is in no container of the app")
      guard case .file = entry.kind else { continue }
      while total < 4 << 20,
        let count = try? buffer.withUnsafeMutableBytes({ try source.read(into: $0) }), count > 0
      {
        total += count
      }
    }
  }
}

/// The seeds of these targets.
enum AppDataSeeds {
  static var all: [(target: String, bytes: [UInt8])] {
    [
      ("snap", snapshot), ("snap-metadata", Array(metadata.utf8)),
      ("app-identity", Array(list.utf8)), ("app-identity", Array(storeList.utf8)),
      ("package-data", package), ("package-data", dataOnly),
    ]
  }

  private static let members: [ZipBuilder.Entry] = [
    .init("Container/", mode: 0o040755), .init("Container/Documents/x", [1, 2]),
    .init("Container/AppGroups/group.example/y", [3]), .init("iTunesArtwork", [4]),
  ]

  private static let package = ZipBuilder.app(members).bytes()

  /// Data without the bundle; a property list names the app.
  private static let dataOnly = ZipBuilder(
    [.init("iTunesMetadata.plist", Array(storeList.utf8))] + members
  ).bytes()

  /// The metadata without line breaks, with the checksum of an archive that the snapshot does not
  /// have.
  private static let metadata =
    #"{"set":1,"time":"2024-05-06T07:08:09.5+02:00","snap":"editor_a","revision":"x1","#
    + #""snap-id":"abc","epoch":{"read":[1,2],"write":[2]},"summary":"","version":"2.0","#
    + #""conf":{"port":80,"list":[1.5,true,null]},"sha3-384":{"archive.tgz":""#
    + String(repeating: "0a", count: 48) + #"","user/ada.tgz":""#
    + String(repeating: "f0", count: 48) + #""},"size":12}"#

  private static let list =
    "<plist><dict><key>CFBundleIdentifier</key><string>com.example.app</string>"
    + "<key>CFBundleShortVersionString</key><string>1.2</string>"
    + "<key>CFBundleVersion</key><string>42</string></dict></plist>"

  private static let storeList =
    "<plist><dict><key>softwareVersionBundleId</key><string>a.b</string>"
    + "<key>bundleVersion</key><string>7</string></dict></plist>"

  /// An export with an empty list, which has no snapshot.
  private static var snapshot: [UInt8] {
    let text = Array(#"{"format":1,"files":["1_editor.zip"]}"#.utf8)
    let member = PaxMember(
      path: Array("export.json".utf8), kind: .file(size: UInt64(text.count)), mode: 0o640)
    return member.header() + text
      + [UInt8](repeating: 0, count: PaxMember.padding(after: UInt64(text.count))) + PaxMember.end
  }
}
