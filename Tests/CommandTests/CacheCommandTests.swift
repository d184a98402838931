import Foundation
import SystemIO
import TestSupport
import Testing

/// `cache` on the command line.
struct CacheCommandTests {
  private let cli: CommandLine

  private static let caches: ByteString = "home/.cache/sandboxctl"

  init() throws {
    cli = try CommandLine()
    try cli.writeTree(files: 6, of: 70_000, seed: 20)
    _ = try cli.succeed("init repo --plain --no-default")
    try cli.backUp()
  }

  private func makeSecond() throws {
    _ = try cli.succeed("init second --plain --no-default")
    try cli.backUp(to: "second")
  }

  private func id(_ repository: String = "repo") throws -> String {
    let bytes = try cli.directory.read(ByteString(repository).appending("repository.json"))
    return try #require(CommandLine.object(String(decoding: bytes, as: UTF8.self))["id"] as? String)
  }

  private func path(_ repository: String = "repo") throws -> ByteString {
    Self.caches.appending(ByteString(try id(repository)))
  }

  /// Returns the number and the size of the files in the cache of a repository.
  private func totals(_ repository: String = "repo") throws -> [String: Int] {
    let directory = cli.directory.string + "/" + (try path(repository).description)
    var (files, bytes) = (0, 0)
    for name in try FileManager.default.subpathsOfDirectory(atPath: directory) {
      let attributes = try FileManager.default.attributesOfItem(atPath: directory + "/" + name)
      guard attributes[.type] as? FileAttributeType == .typeRegular else { continue }
      files += 1
      bytes += attributes[.size] as? Int ?? 0
    }
    return ["files": files, "bytes": bytes]
  }

  /// Returns the totals in a line of JSON.
  private func totals(in value: Any?) -> [String: Int] {
    (value as? [String: Any] ?? [:]).compactMapValues { $0 as? Int }
  }

  // MARK: - list

  @Test func cachesAreListedWithSizeAndUse() throws {
    try makeSecond()
    let lines = try cli.jsonLines("cache list --repo repo --json")
    let ids = [try id("second"), try id()]
    #expect(lines.compactMap { $0["id"] as? String } == ids, "the last used first")
    #expect(lines[0]["path"] == nil && lines[1]["path"] as? String == "repo")
    #expect(try totals(in: lines[1]["holds"]) == totals())
    #expect((lines[1]["others"] as? [Any])?.isEmpty == true)
    let text = try cli.succeed("cache --repo repo").split(separator: "\n")
    #expect(text.count == 3 && text[0].hasPrefix("repository "), "\(text)")
    #expect(text[1].hasPrefix(ids[0].prefix(8)) && !text[1].hasSuffix("second"))
    #expect(text[2].hasPrefix(ids[1].prefix(8)) && text[2].hasSuffix("  repo"), "\(text)")
    #expect(try cli.run("cache list --repo nowhere").code == 10)
  }

  @Test func hostWithoutCachesSaysSo() throws {
    try cli.directory.directory.removeTree("home/.cache")
    let list = try cli.run("cache")
    #expect(list.code == 0 && list.output.isEmpty)
    #expect(list.errors == "note: this host has no cache of a repository\n")
    for line in ["cache clear --repo repo", "cache clear --all"] {
      let outcome = try cli.run(line)
      #expect(outcome.code == 0 && outcome.errors == "note: there is no cache to remove\n")
    }
    #expect(try !cli.isThere("home/.cache"), "no directory is created")
    #expect(try cli.run("cache --quiet", under: ["env", "-u", "HOME"]).code == 0)
  }

  // MARK: - clear

  @Test func nextBackupAfterARemovalIsComplete() throws {
    try makeSecond()
    let (packs, expected) = (try cli.packs(), try totals())
    let outcome = try cli.run("cache clear --repo repo")
    #expect(outcome.code == 0)
    let (name, files) = (try id().prefix(8), expected["files"] ?? 0)
    let text = "removed the cache of repository \(name): \(files) files, "
    #expect(outcome.output.hasPrefix(text), "\(outcome.output)")
    #expect(outcome.errors == "note: the next backup of each source reads all of its files again\n")
    #expect(try cli.names(in: Self.caches) == [ByteString(id("second"))])
    try cli.backUp()
    #expect(try cli.packs() == packs, "nothing is stored again")
    try cli.expectRestored()
    try cli.directory.write("changed", at: "tree/3")
    _ = try cli.succeed("cache clear --repo repo --json")
    try cli.backUp()
    try cli.expectRestored()
    #expect(try cli.succeed("check --read-data --repo repo").hasSuffix("no damage found\n"))
  }

  @Test func dryRunRemovesNothing() throws {
    let expected = try totals()
    let line = try cli.json("cache clear --repo repo --dry-run --json")
    #expect(line["dry_run"] as? Bool == true)
    #expect(totals(in: line["removed"]) == expected)
    #expect(try cli.succeed("cache clear --all --dry-run").hasPrefix("would remove the cache of "))
    #expect(try totals() == expected)
    let removed = try cli.json("cache clear --repo repo --json")
    #expect(removed["dry_run"] as? Bool == false)
    #expect(try removed["id"] as? String == id())
    // The lock that the command takes has another size.
    #expect(totals(in: removed["removed"])["files"] == expected["files"])
    #expect(try cli.names(in: Self.caches).isEmpty)
  }

  @Test func allCachesAreRemoved() throws {
    try makeSecond()
    #expect(try cli.succeed("cache clear --all").split(separator: "\n").count == 2)
    #expect(try cli.names(in: Self.caches).isEmpty)
    for line in ["cache clear --all --repo repo", "cache clear 00000000 --all"] {
      let outcome = try cli.run(line)
      #expect(outcome.code == 2 && outcome.errors.contains("cannot be used together"))
    }
  }

  /// In a configuration file `all` is the length of lists.
  @Test func configurationForAllCommandsDoesNotRemoveAll() throws {
    try makeSecond()
    let file: ByteString = "home/.config/sandboxctl/config.yaml"
    try cli.directory.write("all: true\n", at: file)
    _ = try cli.succeed("cache clear --repo repo")
    #expect(try cli.names(in: Self.caches) == [ByteString(id("second"))])
    try cli.directory.write("cache:\n  clear:\n    all: true\n", at: file)
    _ = try cli.succeed("cache clear")
    #expect(try cli.names(in: Self.caches).isEmpty)
  }

  @Test func openFilesStayValid() throws {
    let index = try path().appending("index")
    let copy = try #require(cli.names(in: index).first { $0.hasSuffix(".index") })
    let file = try Descriptor.open(path: cli.directory.path(index.appending(copy)))
    let before = try cli.directory.read(index.appending(copy))
    _ = try cli.succeed("cache clear --repo repo")
    #expect(try !cli.isThere(index))
    let after = try file.readAll(limit: 1 << 20)
    #expect(after == before)
  }

  @Test func failureIsReported() throws {
    let outcome = try cli.run(
      "cache clear --repo repo",
      under: [
        "strace", "-f", "-o", "trace", "-e", "trace=unlinkat",
        "-e", "inject=unlinkat:error=EACCES:when=1",
      ])
    #expect(outcome.code == 3, "\(outcome.errors)")
    #expect(outcome.errors.contains("warning: not removed: "), "\(outcome.errors)")
    #expect(outcome.errors.contains("permission denied"), "\(outcome.errors)")
    #expect(try totals()["files"] == 1)
    _ = try cli.succeed("cache clear --repo repo")
    #expect(try cli.names(in: Self.caches).isEmpty)
  }

  // MARK: - Locks

  @Test func lockOfASourceIsRespected() throws {
    try makeSecond()
    let expected = try totals()
    let directory = try Directory.open(path: cli.directory.path(try path()))
    let names = try directory.names()
    let name = try #require(names.first { $0.hasSuffix(".lock") })
    let lock = try FileLock(name, in: directory)
    for line in ["cache clear --repo repo", "cache clear --all", "cache clear --all --dry-run"] {
      let outcome = try cli.run(line + " --json")
      #expect(outcome.code == 11 && outcome.output.isEmpty, "\(line): \(outcome.errors)")
      let failure = try CommandLine.object(outcome.errors)
      #expect(failure["code"] as? String == "repository_locked")
      let process = "process \(ProcessInfo.processInfo.processIdentifier)"
      #expect((failure["reason"] as? String)?.contains(process) == true, "\(failure)")
    }
    #expect(try cli.names(in: Self.caches).count == 2, "nothing is removed")
    #expect(try totals()["files"] == expected["files"])
    _ = try cli.succeed("cache clear --repo second")
    withExtendedLifetime(lock) {}
  }

  @Test func runningBackupIsNotDisturbed() throws {
    try cli.directory.write("new", at: "tree/new")
    let calls = "fsync,fdatasync,syncfs"
    let script = """
      strace -f -o trace -e trace=\(calls) -e inject=\(calls):delay_enter=1000000 \
        "$0" backup --layout folder --root tree --repo repo --quiet & B=$!
      until [ -n "$(ls repo/leases)" ]; do kill -0 $B || exit 99; sleep 0.01; done
      "$0" cache clear --repo repo; echo $?
      wait $B; echo $?
      """
    let outcome = try cli.run([], under: ["bash", "-c", script])
    #expect(outcome.output == "11\n0\n", "\(outcome.errors)")
    #expect(outcome.errors.contains("a backup to the repository is in progress (process "))
    #expect(outcome.errors.contains("hint: nothing was removed"))
    try cli.expectRestored()
    #expect(try cli.snapshots().count == 2)
    _ = try cli.succeed("cache clear --repo repo")
    #expect(try cli.names(in: Self.caches).isEmpty)
  }

  // MARK: - Other content

  @Test func onlyFilesOfTheCacheAreRemoved() throws {
    let (cache, hex) = (try path(), String(repeating: "a", count: 64))
    let (state, lock) = (ByteString(hex + ".state"), ByteString(hex + ".lock"))
    let old = ByteString(hex + ".state.old")
    let outside: [ByteString] = [
      "outside/index/kept", ByteString("outside").appending(state), "elsewhere",
    ]
    for name in outside { try cli.directory.write("mine", at: name) }
    let own: [ByteString] = [
      Self.caches.appending("notes/snapshot-heads"), Self.caches.appending("file"),
      Self.caches.appending(ByteString(hex.uppercased())).appending("check-round"),
      cache.appending("notes.txt"), cache.appending("index/notes.txt"),
      cache.appending(old), cache.appending("snapshot-heads.d/file"),
    ]
    for name in own { try cli.directory.write("mine", at: name) }
    let links: [(ByteString, ByteString)] = [
      (Self.caches.appending(ByteString(hex)), "outside"),
      (cache.appending(state), outside[1]), (cache.appending(lock), "elsewhere"),
      (cache.appending("index").appending(ByteString(hex + ".index")), "elsewhere"),
    ]
    for (name, target) in links {
      try cli.directory.directory.createLink(name, to: cli.directory.path(target))
    }
    let listed = try cli.run("cache list --repo repo")
    #expect(listed.code == 0 && listed.output.split(separator: "\n").count == 2)
    #expect(listed.errors.contains("note: not part of a cache: ~/.cache/sandboxctl/notes\n"))
    let outcome = try cli.run("cache clear --all")
    #expect(outcome.code == 0, "\(outcome.errors)")
    for name in own + links.map(\.0) {
      #expect(try cli.isThere(name), "\(name)")
      // A directory that is not part of the cache is reported as such, not its content.
      let parent = name.parent
      let isReported = [Self.caches, cache, cache.appending("index")].contains(parent)
      let shown = (isReported ? name : parent).relative(to: "home")
      let warning = "warning: kept, as it is not part of a cache: ~/\(shown)\n"
      #expect(outcome.errors.contains(warning), "\(shown)")
    }
    let kept: [ByteString] = [lock, state, old, "index", "notes.txt", "snapshot-heads.d"]
    #expect(try cli.names(in: cache) == kept)
    #expect(try cli.names(in: cache.appending("index")).count == 2)
    for name in outside { #expect(try cli.directory.read(name) == Array("mine".utf8)) }
    try cli.backUp()
    try cli.expectRestored()
  }

  @Test func linkInPlaceOfTheIndexIsNotFollowed() throws {
    let cache = try path()
    let copies = try cli.names(in: cache.appending("index"))
    try cli.directory.directory.rename(
      cache.appending("index"), to: "copies", in: cli.directory.directory)
    try cli.directory.directory.createLink(
      cache.appending("index"), to: cli.directory.path("copies"))
    #expect(try cli.run("cache clear --repo repo").errors.contains("\(try id())/index\n"))
    #expect(try cli.names(in: "copies") == copies)
    #expect(try cli.names(in: cache) == ["index"])
  }

  // MARK: - Without the repository

  @Test func cacheOfALostRepositoryIsRemovedByItsID() throws {
    try makeSecond()
    let lost = try id()
    try cli.directory.directory.removeTree("repo")
    let unnamed = try cli.run("cache clear --repo repo")
    #expect(unnamed.code == 10)
    #expect(unnamed.errors.contains("name its cache by its id: 'sandboxctl cache list'"))
    #expect(try cli.jsonLines("cache --json").compactMap { $0["id"] as? String }.contains(lost))
    let digits = lost.prefix(12)
    #expect(try cli.succeed("cache clear \(digits)").contains(lost.prefix(8)))
    #expect(try cli.names(in: Self.caches) == [ByteString(id("second"))])
    let again = try cli.run("cache clear \(digits)")
    #expect(again.code == 1 && again.errors.contains("there is no cache with such an id"))
  }

  @Test func idsAreChecked() throws {
    let second = try String(id().prefix(4)) + String(repeating: "0", count: 60)
    try cli.directory.write(
      "{}", at: Self.caches.appending(ByteString(second)).appending("check-round"))
    let complete = try id()
    for (word, code) in [
      ("abc", 2), (complete.prefix(8).uppercased() + "Z", 2), (complete + "0", 2), ("../..", 2),
      (String(complete.prefix(4)), 2), (String(repeating: "f", count: 64), 1),
    ] as [(String, Int32)] {
      let outcome = try cli.run("cache clear \(word)")
      #expect(outcome.code == code && outcome.errors.contains("cache list"), "\(word)")
    }
    #expect(try cli.names(in: Self.caches).count == 2)
    _ = try cli.succeed("cache clear \(complete) \(complete.prefix(10)) \(second)")
    #expect(try cli.names(in: Self.caches).isEmpty)
  }
}

/// `cache clear` for encrypted repositories.
struct EncryptedCacheTests {
  private let keys: KeyFixture
  private static let warning = "a host without a key of the encrypted repository"

  private var cli: CommandLine { keys.cli }

  init() throws {
    keys = try KeyFixture()
    try keys.writeTree(files: 4, seed: 21)
  }

  @Test func cacheIsRemovedWithoutTheKey() throws {
    let key = "--passphrase-file old"
    try keys.backUp(to: "repo", key)
    let recipients: ByteString = "home/.local/share/sandboxctl/recipients"
    let known = try cli.names(in: recipients)
    let packs = try cli.packs(suffix: ".age")
    let outcome = try keys.run("cache clear --repo repo")
    #expect(outcome.code == 0 && outcome.errors.contains(Self.warning), "\(outcome.errors)")
    #expect(try cli.names(in: "home/.cache/sandboxctl").isEmpty)
    #expect(try cli.names(in: recipients) == known && known.count == 2, "they are no cache")
    try keys.backUp(to: "repo", key)
    #expect(try cli.packs(suffix: ".age") == packs, "nothing is stored again")
    try keys.expectRestored(from: "repo", key)
    let withKey = try keys.run("cache clear --repo repo \(key)")
    #expect(withKey.code == 0 && !withKey.errors.contains(Self.warning), "\(withKey.errors)")
    try keys.expectNoSecrets()
  }

  /// The host's record is sufficient even if the repository cannot be read.
  @Test func hostThatOnlyWritesImportsWhatChanged() throws {
    let recipient = try keys.succeed("key show-recipient --repo repo").split(separator: "\n")[0]
    try keys.succeed("init store --recipient \(recipient) --no-default")
    try keys.succeed("init plain --plain --no-default")
    try keys.succeed("backup --layout folder --root tree --repo plain --quiet")
    try keys.succeed("export itunes phone --repo plain --quiet")
    for unchanged in [0, 5, 5] {
      let line = try keys.succeed("import itunes phone --json --repo store")
      #expect(try CommandLine.object(line)["unchanged"] as? Int == unchanged, "\(line)")
    }
    let checked = try keys.succeed("check --read-data --repo store --identity recovery.key")
    #expect(checked.hasSuffix("no damage found\n"), "\(checked)")
  }

  @Test func hostThatOnlyWritesStoresEverythingAgain() throws {
    let recipient = try keys.succeed("key show-recipient --repo repo").split(separator: "\n")[0]
    try keys.succeed("init store --recipient \(recipient) --no-default")
    try keys.backUp(to: "store")
    let packs = try cli.packs("store", suffix: ".age").count
    try keys.backUp(to: "store")
    #expect(try cli.packs("store", suffix: ".age").count == packs)
    let outcome = try keys.run("cache clear --repo store")
    #expect(outcome.code == 0 && outcome.errors.contains(Self.warning), "\(outcome.errors)")
    try keys.backUp(to: "store")
    #expect(try cli.packs("store", suffix: ".age").count >= 2 * packs)
    try keys.expectRestored(from: "store", "--identity recovery.key")
    let checked = try keys.succeed("check --read-data --repo store --identity recovery.key")
    #expect(checked.hasSuffix("no damage found\n"), "\(checked)")
  }
}
