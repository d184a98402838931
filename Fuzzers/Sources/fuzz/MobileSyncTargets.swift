import Codecs
import SystemIO

@testable import Interchange

extension Target {
  /// Parts of iTunes and Finder backups.
  static let mobileSyncTargets = [
    Target(name: "keybag", run: keybag),
    Target(name: "mobile-file", run: mobileFile),
    Target(name: "mbdb", run: mbdb),
    Target(name: "backup-lists", run: backupLists),
    Target(name: "backup-content", run: backupContent),
  ]

  /// A keybag. Opening an accepted one must take a bounded time.
  @Sendable private static func keybag(_ bytes: [UInt8]) {
    guard let keybag = try? Keybag(bytes) else { return }
    require(
      (1...Keybag.Limit.rounds).contains(keybag.rounds)
        && keybag.first.map { (1...Keybag.Limit.firstRounds).contains($0.rounds) } ?? true,
      "a keybag with a number of rounds beyond the limit is accepted")
    require(keybag.classes.count <= Keybag.Limit.classes, "a keybag has too many classes")
    guard keybag.rounds < 10, keybag.first?.rounds ?? 0 < 10 else { return }
    _ = keybag.unlock(password: SecretBytes(copying: Array("x".utf8).span))
  }

  /// The metadata of a file. Accepted metadata must be the same after writing it, and the general
  /// reader must read whatever the direct one accepts in the same way.
  @Sendable private static func mobileFile(_ bytes: [UInt8]) {
    if let members = UsualArchive.members(of: bytes) {
      require(
        (try? KeyedArchive(bytes).members()) == members, "the two readers of metadata disagree")
    }
    guard let file = try? MobileFile(archive: bytes) else { return }
    guard let written = try? file.archive(relativePath: "x"),
      let again = try? MobileFile(archive: written)
    else { fatalError("accepted metadata cannot be written again") }
    require(again == file, "metadata changed when it was written and read again")
  }

  /// A manifest of iOS 4 to 9. Each record has at least 51 bytes.
  @Sendable private static func mbdb(_ bytes: [UInt8]) {
    guard let file = try? Descriptor.inMemory(bytes) else { return }
    var count = 0
    do {
      var reader = try MBDBReader(file)
      while let record = try reader.next() {
        count += 1
        require(MobileRecord.isFileID(record.fileID), "a record has an invalid file ID")
        _ = record.kind
        _ = MobileSyncDomains(apps: ["a"]).container(of: record.domain)
      }
    } catch {}
    require(count * 51 <= bytes.count, "a manifest has more records than bytes for them")
  }

  /// The property lists of a backup, all in one. A backup that is written for the same device must
  /// have the same description.
  @Sendable private static func backupLists(_ bytes: [UInt8]) {
    guard let list = try? PropertyList(reading: bytes, limits: .init(bytes: 1 << 20)) else {
      return
    }
    let device = MobileSyncProperties(manifest: list, info: list, status: list).device
    let names = device.apps.map(\.identifier)
    require(zip(names, names.dropFirst()).allSatisfy { $0 < $1 }, "an app is listed twice")
    require(abs(device.madeAt?.seconds ?? 0) < 1 << 41, "a backup is of no possible time")
    let texts = [
      device.name, device.identifier, device.productType, device.osVersion, device.buildVersion,
      device.serialNumber,
    ]
    require(!texts.contains(""), "a text is empty")
    let written = MobileSyncLists(device: device, domains: [], keys: nil).all.map { name, list in
      guard let bytes = try? list.binary(), let read = try? PropertyList(reading: bytes) else {
        fatalError("\(name) cannot be read after it was written")
      }
      return read
    }
    var again = MobileSyncProperties(manifest: written[1], info: written[0], status: written[2])
      .device
    // Other members are replaced with those of the written form.
    again.osVersion = device.osVersion
    if device.madeAt == nil { again.madeAt = nil }
    require(again == device, "the description changed when it was written and read again")
  }

  /// An encrypted content after two bytes with its recorded size. It must be the same whether it is
  /// read in parts or at once, and have its size.
  @Sendable private static func backupContent(_ bytes: [UInt8]) {
    guard bytes.count >= 2 else { return }
    let recorded = UInt64(bytes[0]) << 8 | UInt64(bytes[1])
    let stored = Array(bytes.dropFirst(2))
    guard var payload = contentPayload(stored, recorded),
      var second = contentPayload(stored, recorded)
    else { return }
    require(payload.size <= UInt64(stored.count), "a content is larger than what is stored")
    var all: [UInt8] = []
    var parts: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1000)
    do {
      try payload.readAll(appendingTo: &all)
      while case let count = try buffer.withUnsafeMutableBytes({ try second.read(into: $0) }),
        count > 0
      {
        parts += buffer[..<count]
      }
    } catch { fatalError("a content that was opened cannot be read: \(error)") }
    require(UInt64(all.count) == payload.size, "a content does not have its size")
    require(parts == all, "the parts of a content differ from it")
  }

  private static func contentPayload(_ stored: [UInt8], _ recorded: UInt64) -> MobileSyncPayload? {
    let key = ClassKeys.Key(SecretBytes(copying: [UInt8](repeating: 0, count: 32).span))
    guard let contents = noContents, let file = try? Descriptor.inMemory(stored) else { return nil }
    let domain: ByteString = "AppDomain-x"
    var record = MobileRecord(
      domain: domain, relativePath: "f",
      fileID: MobileRecord.fileID(domain: domain, relativePath: "f"), flags: 1, file: MobileFile())
    record.file.size = recorded
    return try? MobileSyncPayload(
      file, key: key, of: record, in: contents, digest: DigestCheck(nil, acceptsPlain: false))
  }

  /// No contents, for a content whose size is not the recorded one.
  private static let noContents: MobileSyncContents? = try? MobileSyncContents(
    in: Directory.open(path: "/"), hasDirectories: true)
}

/// The seeds of these targets.
enum MobileSyncSeeds {
  static func all() throws -> [(target: String, bytes: [UInt8])] {
    [
      ("keybag", keybag(first: 3)), ("keybag", keybag(first: nil)),
      ("mobile-file", try file().archive(relativePath: "Documents/x")),
      ("mobile-file", try link.archive(relativePath: "link")),
      ("mbdb", manifest),
      ("backup-lists", Array(lists.utf8)), ("backup-lists", try writtenLists()),
      ("backup-content", content),
    ]
  }

  /// The members of the three lists, as Apple's programs write them.
  private static let lists = """
    <plist version="1.0"><dict><key>Applications</key><dict><key>com.example.app</key><dict>
    <key>CFBundleVersion</key><string>42</string>
    <key>ContainerContentClass</key><string>Data/Application</string></dict>
    <key>group.example</key><dict><key>ContainerContentClass</key><string>Shared/AppGroup</string>
    </dict></dict><key>Date</key><date>2024-05-06T07:08:09Z</date>
    <key>Device Name</key><string>Phone</string><key>IsEncrypted</key><true/>
    <key>Installed Applications</key><array><string>org.example.b</string></array>
    <key>Lockdown</key><dict><key>ProductVersion</key><string>16.1</string>
    <key>DeviceName</key><string/></dict><key>SnapshotState</key><string>finished</string>
    </dict></plist>
    """

  private static func writtenLists() throws -> [UInt8] {
    var device = MobileSyncDevice()
    (device.name, device.osVersion, device.madeAt) = ("Phone", "17.5", Timestamp(seconds: 1))
    device.apps = [.init(identifier: "com.example.app", build: "42")]
    let domains: Set<ByteString> = ["AppDomainGroup-group.example"]
    return try MobileSyncLists(device: device, domains: domains, keys: nil).all[1].list.binary()
  }

  /// 20 bytes, encrypted with a key of zeros.
  private static var content: [UInt8] {
    var cipher = PaddedCipher(
      key: SecretBytes(copying: [UInt8](repeating: 0, count: 32).span))
    return [0, 20] + cipher.encrypt(Array(0..<20)) + cipher.finish()
  }

  private static func file() -> MobileFile {
    var file = MobileFile()
    (file.mode, file.size, file.owner, file.group) = (0o100644, 3, 501, .max - 1)
    (file.modified, file.protectionClass, file.digest) = (1_700_000_000, 3, Array(0..<20))
    file.key = WrappedKey([3, 0, 0, 0] + Array(0..<40))
    file.attributes = [.init(name: "com.example.a", value: [1, 2])]
    return file
  }

  private static var link: MobileFile {
    var file = MobileFile()
    (file.mode, file.target) = (0o120755, "/private/var/mobile/x")
    return file
  }

  private static func keybag(first: UInt8?) -> [UInt8] {
    func item(_ tag: String, _ value: [UInt8]) -> [UInt8] {
      Array(tag.utf8) + [0, 0, 0, UInt8(value.count)] + value
    }
    let salt = [UInt8](repeating: 7, count: 20)
    var bytes =
      item("VERS", [0, 0, 0, 3]) + item("UUID", Array(0..<16)) + item("WRAP", [0, 0, 0, 1])
    bytes += item("SALT", salt) + item("ITER", [0, 0, 0, 2])
    if let first { bytes += item("DPIC", [0, 0, 0, first]) + item("DPSL", salt) }
    bytes += item("UUID", Array(0..<16)) + item("CLAS", [0, 0, 0, 3]) + item("WRAP", [0, 0, 0, 2])
    return bytes + item("KTYP", [0, 0, 0, 0]) + item("WPKY", Array(0..<40))
  }

  /// A directory, a file with a digest, a key and an attribute, and a link.
  private static var manifest: [UInt8] {
    func string(_ text: String?) -> [UInt8] {
      text.map { [0, UInt8($0.utf8.count)] + Array($0.utf8) } ?? [0xff, 0xff]
    }
    func numbers(mode: [UInt8], attributes: UInt8) -> [UInt8] {
      mode + [UInt8](repeating: 0, count: 36) + [3, attributes]
    }
    let domain = string("AppDomain-com.example.app")
    var bytes = MBDBReader.magic
    bytes += domain + string("") + string(nil) + string(nil) + string(nil)
    bytes += numbers(mode: [0x41, 0xed], attributes: 0)
    bytes += domain + string("Documents/x") + string(nil) + [0, 20] + Array(0..<20)
    bytes += [0, 44, 3, 0, 0, 0] + Array(0..<40)
    bytes += numbers(mode: [0x81, 0xa4], attributes: 1) + string("a") + string("b")
    bytes += domain + string("link") + string("/private/x") + string(nil) + string(nil)
    return bytes + numbers(mode: [0xa1, 0xff], attributes: 0)
  }
}
