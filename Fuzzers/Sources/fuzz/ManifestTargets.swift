import Codecs
import SystemIO

@testable import Interchange

extension Target {
  /// The manifests of backups since iOS 10.
  static let manifestTargets = [Target(name: "manifest-database", run: manifestDatabase)]

  /// An untrusted database. It must not have more rows than its size permits.
  @Sendable private static func manifestDatabase(_ bytes: [UInt8]) {
    var content = bytes
    SQLiteDatabase.clearLogMode(header: &content)
    guard SQLiteDatabase.pageSize(header: content) != nil,
      let file = try? Descriptor.inMemory(content), let memory = try? MappedFile(file),
      let database = try? SQLiteDatabase.open(memory)
    else { return }
    var count = 0
    do {
      var rows = try ManifestDatabase(database, size: UInt64(content.count))
      while let row = try rows.next() {
        count += 1
        guard case .success(let record) = row.record() else { continue }
        require(MobileRecord.isFileID(record.fileID), "a record has an invalid file ID")
        require(!record.domain.isEmpty, "a record has no domain")
        _ = record.kind
        _ = MobileSyncDomains(apps: ["a"]).container(of: record.domain)
      }
    } catch {}
    require(count * 40 <= content.count, "a manifest has more rows than bytes for them")
  }
}

/// The seeds of this target: databases with small pages.
enum ManifestSeeds {
  static func all() throws -> [(target: String, bytes: [UInt8])] {
    var plain = try database(rows: rows())
    let seeds = try [plain, database(rows: ""), database(rows: view, hasTable: false)]
    // Apple's programs write the database with a WAL.
    (plain[18], plain[19]) = (2, 2)
    return (seeds + [plain]).map { ("manifest-database", $0) }
  }

  private static let table = """
    CREATE TABLE Files (fileID TEXT PRIMARY KEY, domain TEXT, relativePath TEXT, flags INTEGER, \
    file BLOB);
    CREATE TABLE Properties (key TEXT PRIMARY KEY, value BLOB);
    """

  private static let view = "CREATE VIEW Files AS SELECT 1 AS fileID;"

  /// A directory, a file of several pages, and rows that cannot be imported.
  private static func rows() throws -> String {
    func id(_ digit: Character) -> String { String(repeating: digit, count: 40) }
    func blob(_ file: MobileFile, _ path: String) throws -> String {
      "X'" + Hex.encode(try file.archive(relativePath: ByteString(path))) + "'"
    }
    var directory = MobileFile()
    directory.mode = 0o040755
    var file = MobileFile()
    (file.mode, file.size, file.owner, file.group) = (0o100644, 3, 501, 501)
    let domain = "'AppDomain-com.example.app'"
    return try """
    INSERT INTO Files VALUES ('\(id("a"))', \(domain), '', 2, \(blob(directory, "")));
    INSERT INTO Files VALUES ('\(id("b"))', \(domain), 'x', 1, \(blob(file, "x")));
    INSERT INTO Files VALUES ('\(id("c"))', \(domain), 'y', 1, NULL);
    INSERT INTO Files VALUES ('d', 7, X'00', 'z', 'text');
    """
  }

  /// Returns the file of a database.
  private static func database(rows: String, hasTable: Bool = true) throws -> [UInt8] {
    let parent = try Directory.open(path: "/tmp")
    let name = ByteString("sandboxctl-seed-\(Host.randomHex(bytes: 8))")
    let directory = try parent.makeDirectory(name, permissions: 0o700)
    defer { try? parent.removeTree(name) }
    do {
      let database = try SQLiteDatabase.create(
        path: Host.realPath("/tmp").appending(name).appending("seed"))
      try database.execute("PRAGMA page_size = 512; PRAGMA journal_mode = OFF;")
      if hasTable { try database.execute(table) }
      try database.execute(rows)
    }
    return try directory.file("seed").readAll(limit: 1 << 20) ?? []
  }
}
