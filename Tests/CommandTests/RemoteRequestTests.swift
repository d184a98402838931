import Foundation
import SystemIO
import TestSupport
import Testing

/// The requests of commands on repositories of other hosts. On a link with a round trip of 20 ms,
/// they dominate the cost of a short command: an unchanged backup makes at most 10, a list of
/// snapshots 3.
struct RemoteRequestTests {
  private let cli: CommandLine

  init() throws {
    cli = try CommandLine()
    for number in 0..<30 {
      try cli.directory.write("file \(number)", at: ByteString("data/d\(number % 3)/\(number)"))
    }
  }

  /// An object store that logs its requests (RemoteStorageTests/Programs/store.py).
  private struct Store {
    let process: BoundProcess
    let environment: [String: String]
    private let log: String

    init() throws {
      let program = Shared.packageRoot.appendingPathComponent(
        "Tests/RemoteStorageTests/Programs/store.py")
      process = try BoundProcess("python3", [program.path])
      let endpoint = "http://127.0.0.1:\(process.firstLine)"
      log = endpoint + "/-/log"
      environment = [
        "AWS_ACCESS_KEY_ID": "KEY", "AWS_SECRET_ACCESS_KEY": "SECRET",
        "AWS_ENDPOINT_URL": endpoint, "no_proxy": "127.0.0.1",
      ]
    }

    /// Returns all requests so far: the method, and the location in the repository without ids.
    func requests() throws -> [String] {
      let reader = """
        import json, re, sys, urllib.parse, urllib.request
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        for entry in json.load(opener.open(sys.argv[1])):
            target = urllib.parse.urlsplit(entry["target"])
            query = urllib.parse.parse_qs(target.query)
            place = query["prefix"][0] if "prefix" in query else target.path[len("/bucket/"):]
            place = re.sub("[0-9a-f]{32,}.*", "ID", re.sub("/by-.*", "/by", place))
            print("LIST" if "prefix" in query else entry["method"], re.sub("/../ID", "/ID", place))
        """
      let found = try Program.run("python3", ["-c", reader, log])
      return found.output.split(separator: "\n").map(String.init)
    }
  }

  /// Runs a command, and returns the requests that it makes.
  private func requests(_ line: String, _ store: Store) throws -> [String] {
    let before = try store.requests().count
    let words = line.split(separator: " ").map(String.init)
    let outcome = try cli.run(words, environment: store.environment)
    #expect(outcome.code == 0, "\(line): \(outcome.errors)")
    return Array(try store.requests().dropFirst(before))
  }

  private static let backup = "backup --root data --layout folder"

  @Test func shortCommandsOnAStoreOfObjectsMakeFewRequests() throws {
    let store = try Store()
    _ = try requests("init s3://bucket/r --plain", store)
    let first = try requests(Self.backup, store)
    #expect(first.count <= 16 + (TestEncryption.isOn ? 1 : 0), "\(first)")
    // The recipients of a repository that was just created are read again.
    let again = TestEncryption.isOn ? ["GET r/repository.json"] : []
    let listed = ["GET r/repository.json", "PUT r/leases/ID", "LIST r/condemned/", "LIST r/"]
    let committed = [
      "PUT r/pending/ID", "LIST r/leases/ID", "PUT r/snapshots/ID", "LIST r/leases/ID", "POST ",
    ]
    let unchanged = try requests(Self.backup, store)
    #expect(unchanged == listed + again + committed)
    #expect(unchanged.count <= 10)
    try cli.directory.write("changed", at: "data/d0/0")
    let changed = try requests(Self.backup, store)
    #expect(changed.count <= 16 + again.count, "\(changed)")
    #expect(try requests("snapshots", store) == ["GET r/repository.json", "LIST r/"])
    // Everything that was put is still one repository, and no traces of the programs remain.
    _ = try requests("check --read-data", store)
    _ = try requests("restore latest --to back", store)
    let back = try cli.directory.read("back/folders/data/d0/0")
    #expect(String(decoding: back, as: UTF8.self) == "changed")
    #expect(try requests("leases", store).count == 2)
  }

  /// A restore lists the objects that it needs together with the settings, without a lease, and
  /// again under its lease.
  @Test func aRestoreListsTwiceAndOpensItsConnectionsAtOnce() throws {
    let store = try Store()
    _ = try requests("init s3://bucket/r --plain", store)
    _ = try requests(Self.backup, store)
    for target in ["--to back", "--to back --overwrite always", "--to other --dry-run"] {
      let all = try requests("restore latest \(target)", store)
      let lists = ["LIST r/index/", "LIST r/snapshots/"]
      for list in lists { #expect(all.count { $0 == list } == 2, "\(all)") }
      // Five connections: three are for the settings and the lists.
      #expect(all.count { $0 == "LIST r/repository.json" } == 2, "\(all)")
      let signs = all.indices.filter { all[$0] == "PUT r/leases/ID" }
      #expect(signs.count == 2, "\(all)")
      let last = try #require(signs.last)
      #expect(lists.allSatisfy { list in all[last...].contains(list) }, "\(all)")
      #expect(all.last == "POST ", "\(all)")
    }
    #expect(try requests("leases", store).count == 2)
  }

  /// The key file of this host is the third one.
  @Test func snapshotsOfAnEncryptedRepositoryAreListedWithThreeRequests() throws {
    let store = try Store()
    try cli.directory.write("a long passphrase", at: "pass")
    let key = "--passphrase-file pass"
    let recovery = "\(cli.directory.string)/home/key"
    _ = try requests("init s3://bucket/r \(key) --recovery-key \(recovery)", store)
    _ = try requests("\(Self.backup) \(key)", store)
    _ = try requests("snapshots pin latest \(key)", store)
    let before = try store.requests().count
    let outcome = try cli.run(
      ["snapshots", "--json", "--passphrase-file", "pass"], environment: store.environment)
    // The first listing after a snapshot was made is just as short: its head is in the cache.
    let listed = Array(try store.requests().dropFirst(before))
    #expect(listed.count == 3, "\(listed)")
    #expect(listed.first == "GET r/repository.json" && listed.last == "LIST r/", "\(listed)")
    #expect(try CommandLine.object(outcome.output)["pinned"] as? Bool == true, "\(outcome)")
  }

  /// Returns the number of requests that a command reports with `--verbose`.
  private func reported(_ line: String) throws -> Int {
    let outcome = try cli.run(line + " --verbose")
    #expect(outcome.code == 0, "\(outcome.errors)")
    let words = outcome.errors.split(whereSeparator: { " \n,".contains($0) })
    let last = try #require(words.lastIndex { $0 == "requests" || $0 == "request" })
    return try #require(Int(words[last - 1]))
  }

  @Test(SFTPServer.isInstalled) func anUnchangedBackupOverSFTPMakesFewRequests() throws {
    let server = try SFTPServer(for: cli)
    _ = try cli.succeed("init \(server.location()) --plain \(server.option)")
    _ = try reported(Self.backup)
    let unchanged = try reported(Self.backup)
    #expect(unchanged <= 10 + (TestEncryption.isOn ? 1 : 0), "\(unchanged)")
    #expect(try cli.succeed("snapshots").split(separator: "\n").count == 3)
    _ = try cli.succeed("check --read-data --repo store")
  }
}
