import Codecs
import SystemIO
import TestSupport

@testable import Interchange

/// A backup as iTunes and the Finder write it, in a temporary directory.
///
/// The manifest, the keybag and the encryption are written here according to the description of the
/// format, not by the program's own writer.
struct MobileSyncFixture {
  /// An entry of a backup.
  struct Item {
    var domain: String
    var path: String
    var content: Content
    var file = MobileFile()
    /// The name of the content, or nil for the correct one.
    var fileID: ByteString?
    /// The flags, or nil for the correct ones.
    var flags: Int64?
    /// The metadata, or nil for that of `file`.
    var archive: [UInt8]?
    /// Whether the content is written.
    var isStored = true

    enum Content {
      case file([UInt8])
      case directory
      case symlink(String)
    }

    init(
      _ domain: String, _ path: String, _ content: Content,
      with change: (inout Item) -> Void = { _ in }
    ) {
      (self.domain, self.path, self.content) = (domain, path, content)
      file.modified = 1_700_000_000
      (file.owner, file.group) = (501, 501)
      switch content {
      case .file(let bytes):
        (file.mode, file.size, file.protectionClass) = (0o100644, UInt64(bytes.count), 3)
      case .directory: file.mode = 0o040755
      case .symlink(let target):
        (file.mode, file.target) = (0o120755, ByteString(target))
      }
      change(&self)
    }

    var usualFlags: Int64 {
      switch content {
      case .file: 1
      case .directory: 2
      case .symlink: 4
      }
    }
  }

  /// The form of the manifest.
  enum Form: CaseIterable {
    case database, records
  }

  var items: [Item]
  var form = Form.database
  var password: String?
  /// Whether the database is padded as by Apple's programs.
  var isManifestPadded = true
  /// Whether the contents are padded.
  var areContentsPadded = true
  /// The rounds of the first derivation, or nil for a keybag of iOS before 10.2.
  var firstRounds: UInt32? = 3
  var rounds: UInt32 = 2
  var snapshotState = "finished"

  init(_ items: [Item]) { self.items = items }

  static let classNumber: UInt32 = 3
  private static let classKey = [UInt8](repeating: 0x3c, count: 32)
  static let manifestKey = [UInt8](repeating: 0x4d, count: 32)

  /// Writes the backup and returns its directory.
  func write() throws -> TemporaryDirectory {
    let directory = try TemporaryDirectory("itunes")
    var items = items
    for index in items.indices { try write(&items[index], number: index, to: directory) }
    switch form {
    case .database: try writeDatabase(items, to: directory)
    case .records: try directory.write(Self.records(items), at: "Manifest.mbdb")
    }
    try writeLists(to: directory)
    return directory
  }

  // MARK: - Contents

  private func write(
    _ item: inout Item, number: Int, to directory: TemporaryDirectory
  ) throws {
    guard case .file(var bytes) = item.content else { return }
    if password != nil, item.file.key == nil {
      let key = [UInt8](repeating: UInt8(truncatingIfNeeded: number + 1), count: 32)
      bytes = Self.encrypt(bytes, key: key, isPadded: areContentsPadded)
      item.file.key = WrappedKey(Self.wrapped(key))
    }
    guard item.isStored else { return }
    let name = Self.name(of: item)
    try directory.write(
      bytes, at: form == .records ? name : ByteString(name.bytes.prefix(2)).appending(name))
  }

  static func name(of item: Item) -> ByteString {
    MobileRecord.fileID(domain: ByteString(item.domain), relativePath: ByteString(item.path))
  }

  /// Encrypts bytes; without padding, the last block is filled up with zeros.
  static func encrypt(_ bytes: [UInt8], key: [UInt8], isPadded: Bool) -> [UInt8] {
    var plain = bytes
    if isPadded {
      plain += BlockPadding.bytes(after: UInt64(bytes.count))
    } else {
      while plain.count % 16 != 0 { plain.append(0) }
    }
    var encrypted: [UInt8] = []
    var cipher = BlockCipher(.encrypt, key: SecretBytes(copying: key.span))
    cipher.process(plain.span, appendingTo: &encrypted)
    return encrypted
  }

  /// Returns the number of the class, followed by a key wrapped with the key of the class.
  static func wrapped(_ key: [UInt8]) -> [UInt8] {
    let wrapped = KeyWrap.wrap(
      SecretBytes(copying: key.span), with: SecretBytes(copying: classKey.span))
    return [UInt8(classNumber), 0, 0, 0] + wrapped
  }

  // MARK: - The manifest

  private func writeDatabase(_ items: [Item], to directory: TemporaryDirectory) throws {
    let path = directory.path("plain.db")
    try Self.makeDatabase(items, at: path)
    var bytes = try directory.read("plain.db")
    try directory.directory.remove("plain.db")
    // Apple's programs write the database with a WAL.
    (bytes[18], bytes[19]) = (2, 2)
    if password != nil, firstRounds != nil {
      bytes = Self.encrypt(bytes, key: Self.manifestKey, isPadded: isManifestPadded)
    }
    try directory.write(bytes, at: "Manifest.db")
  }

  static func makeDatabase(_ items: [Item], at path: ByteString) throws {
    let database = try SQLiteDatabase.create(path: path)
    try database.execute(
      """
      PRAGMA synchronous = OFF;
      BEGIN;
      CREATE TABLE Files (fileID TEXT PRIMARY KEY, domain TEXT, relativePath TEXT, flags INTEGER, \
      file BLOB);
      CREATE INDEX FilesDomainIdx ON Files(domain);
      CREATE TABLE Properties (key TEXT PRIMARY KEY, value BLOB);
      """)
    try insert(items, into: database)
    try database.execute("COMMIT")
  }

  static func insert(_ items: [Item], into database: SQLiteDatabase) throws {
    let insert = try database.prepare("INSERT INTO Files VALUES (?, ?, ?, ?, ?)")
    for item in items {
      let id = item.fileID ?? name(of: item)
      try insert.bind(String(decoding: id.bytes, as: UTF8.self), to: 1)
      try insert.bind(item.domain, to: 2)
      try insert.bind(item.path, to: 3)
      try insert.bind(item.flags ?? item.usualFlags, to: 4)
      try insert.bind(
        try item.archive ?? item.file.archive(relativePath: ByteString(item.path)), to: 5)
      try insert.run()
    }
  }

  static func records(_ items: [Item]) -> [UInt8] {
    var bytes = MBDBReader.magic
    func string(_ value: [UInt8]?) {
      guard let value else {
        bytes += [0xff, 0xff]
        return
      }
      number(UInt64(value.count), 2)
      bytes += value
    }
    func number(_ value: UInt64, _ size: Int) {
      bytes += (0..<size).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * (size - 1 - $0))) }
    }
    for item in items {
      let file = item.file
      string(Array(item.domain.utf8))
      string(Array(item.path.utf8))
      string(file.target.map { Array($0.bytes) })
      string(file.digest)
      string(file.key?.encoded)
      number(UInt64(file.mode ?? 0), 2)
      number(file.inode, 8)
      number(UInt64(file.owner), 4)
      number(UInt64(file.group), 4)
      for _ in 0..<3 { number(UInt64(file.modified), 4) }
      number(file.size, 8)
      number(UInt64(file.protectionClass), 1)
      number(UInt64(file.attributes.count), 1)
      for attribute in file.attributes {
        string(Array(attribute.name.bytes))
        string(attribute.value)
      }
    }
    return bytes
  }

  // MARK: - The property lists

  private func writeLists(to directory: TemporaryDirectory) throws {
    var manifest: [PropertyList.Member] = [
      .init("IsEncrypted", .bool(password != nil)), .init("Version", .string("10.0")),
      .init("BackupKeyBag", .data(keybag)),
      .init(
        "Lockdown",
        .dictionary([
          .init("DeviceName", .string("Ada’s iPhone")), .init("ProductType", .string("iPhone9,3")),
          .init("ProductVersion", .string("15.8")), .init("UniqueDeviceID", .string("00ab")),
        ])),
      .init(
        "Applications",
        .dictionary([
          .init(
            "com.example.app",
            .dictionary([
              .init("CFBundleVersion", .string("42")),
              .init("ContainerContentClass", .string("Data/Application")),
            ])),
          .init(
            "com.example.app.ext",
            .dictionary([.init("ContainerContentClass", .string("Data/PluginKitPlugin"))])),
        ])),
    ]
    if password != nil, firstRounds != nil {
      manifest.append(.init("ManifestKey", .data(Self.wrapped(Self.manifestKey))))
    }
    try directory.write(PropertyList.dictionary(manifest).binary(), at: "Manifest.plist")
    try directory.write(
      PropertyList.dictionary([
        .init("SnapshotState", .string(snapshotState)), .init("Date", .date(700_000_000)),
      ]).binary(), at: "Status.plist")
    try directory.write(
      PropertyList.dictionary([
        .init("Installed Applications", .array([.string("org.example.other-app")]))
      ]).xml(), at: "Info.plist")
  }

  /// The keybag, with the first class last, as some writers order it, and a class that only the
  /// device can unwrap.
  var keybag: [UInt8] {
    let salt = [UInt8](repeating: 0x5a, count: 20)
    let firstSalt = [UInt8](repeating: 0xd5, count: 20)
    var key = SecretBytes(copying: Array((password ?? "").utf8).span)
    if let firstRounds, firstRounds < 1000 {
      key = PasswordKey.derive(from: key, salt: firstSalt, rounds: firstRounds, hash: .sha256)
    }
    key = PasswordKey.derive(from: key, salt: salt, rounds: min(rounds, 1000), hash: .sha1)
    let wrapped = KeyWrap.wrap(SecretBytes(copying: Self.classKey.span), with: key)
    var bag = Self.item("VERS", 5) + Self.item("TYPE", 1)
    bag += Self.item("UUID", [UInt8](repeating: 1, count: 16))
    bag += Self.item("HMCK", [UInt8](repeating: 2, count: 40)) + Self.item("WRAP", 1)
    bag += Self.item("SALT", salt) + Self.item("ITER", rounds)
    if let firstRounds {
      bag += Self.item("DPWT", 1) + Self.item("DPIC", firstRounds) + Self.item("DPSL", firstSalt)
    }
    for (number, wrapping, wrapped) in [
      (11, 1, [UInt8](repeating: 9, count: 40)), (Self.classNumber, 2, wrapped),
    ] as [(UInt32, UInt32, [UInt8])] {
      bag += Self.item("UUID", [UInt8](repeating: UInt8(number), count: 16))
      bag += Self.item("CLAS", number) + Self.item("WRAP", wrapping) + Self.item("KTYP", 0)
      bag += Self.item("WPKY", wrapped)
    }
    return bag
  }

  static func item(_ tag: String, _ value: [UInt8]) -> [UInt8] {
    Array(tag.utf8) + word(UInt32(value.count)) + value
  }

  static func item(_ tag: String, _ number: UInt32) -> [UInt8] { item(tag, word(number)) }

  private static func word(_ number: UInt32) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: number >> UInt32(24 - 8 * $0)) }
  }
}

extension MobileSyncFixture {
  /// An entry that was read, with its content.
  struct Read: Hashable {
    var entry: ForeignEntry
    var content: [UInt8]
  }

  /// The result of reading a whole backup.
  struct Outcome {
    var entries: [ByteString: Read] = [:]
    var skipped = SkippedEntries()
    /// The files whose content could not be read, with the reason.
    var damaged: [ByteString: String] = [:]

    var reasons: [String] { skipped.listed.map { "\($0.path): \($0.reason)" } }
  }

  /// Reads a backup in a directory, as an import does.
  static func read(_ path: ByteString, password: String? = nil) throws -> Outcome {
    let secret = password.map { BackupPassword(SecretBytes(copying: Array($0.utf8).span)) }
    var source = try MobileSyncSource(try MobileSyncBackup(path: path, password: secret))
    var outcome = Outcome()
    var buffer = [UInt8](repeating: 0, count: 1000)
    while let entry = try source.next() {
      var content: [UInt8] = []
      do {
        while true {
          let count = try buffer.withUnsafeMutableBytes { try source.read(into: $0) }
          if count == 0 { break }
          content += buffer.prefix(count)
        }
        outcome.entries[entry.joinedPath] = Read(entry: entry, content: content)
      } catch let error as InterchangeError where error.kind == .damagedEntry {
        outcome.damaged[entry.joinedPath] = error.reason
      }
    }
    outcome.skipped = source.skipped
    return outcome
  }

  /// Writes a backup and reads it.
  func read() throws -> Outcome {
    let directory = try write()
    return try Self.read(directory.path, password: password)
  }
}

extension MobileSyncBackup {
  /// Whether a directory has a list and a manifest of a backup.
  static func isBackup(_ directory: borrowing Directory) throws -> Bool {
    let names = Set(try directory.names())
    return names.contains("Manifest.plist")
      && !names.isDisjoint(with: ["Manifest.db", "Manifest.mbdb"])
  }
}
