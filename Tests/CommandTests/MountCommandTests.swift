import Foundation
import SystemIO
import TestSupport
import Testing

/// `mount` with the kernel. Without FUSE the tests are skipped.
@Suite(.enabled(if: MountedView.isPossible)) struct MountCommandTests {
  private let cli: CommandLine

  init() throws { cli = try CommandLine(inMemory: true) }

  private func backUp(_ name: String = "tree") throws {
    if try !cli.isThere("repo") { _ = try cli.succeed("init repo --plain") }
    _ = try cli.succeed("backup --layout folder --root \(name) --repo repo --quiet")
  }

  private func shell(_ text: String) throws -> Program.Outcome {
    try Program.run("bash", ["-c", text], in: cli.directory.url)
  }

  /// The kernel shows what a restore writes: names, types, modes, owners, times, links, holes,
  /// attributes, lists of access and bytes.
  @Test func mountedTreeEqualsItsRestore() throws {
    try OddTree.make(in: cli.directory, at: "tree")
    try backUp()
    _ = try cli.succeed("restore latest:folders/tree --to restored --repo repo --quiet")
    let view = try MountedView(cli)
    try ChangeDetector.expectSame(cli.directory, "restored", "view/latest/folders/tree")
    let linked = try shell(
      """
      stat -c %h view/latest/folders/tree/{large,folder,twin}
      find view/latest/ -inum $(stat -c %i view/latest/folders/tree/twin) | wc -l
      """)
    #expect(linked.output == "3\n3\n3\n3\n", "\(linked.output)")
    let copied = try shell("cp -a view/latest/folders/tree copy")
    #expect(copied.code == 0, "\(copied.errors)")
    try ChangeDetector.expectSame(cli.directory, "restored", "copy")
    #expect(view.end(by: SIGTERM) == 0 && !view.isMounted, "\(view.errors)")
  }

  @Test func mountedSampleDeviceEqualsItsRestore() throws {
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --root device --repo repo --quiet")
    _ = try cli.succeed("restore latest --to restored --repo repo --quiet")
    let view = try MountedView(cli)
    let name = try #require(
      try FileManager.default.contentsOfDirectory(atPath: view("snapshots")).first)
    try ChangeDetector.expectSame(
      cli.directory, "restored", ByteString("view/snapshots/\(name)"))
    let app = "org.example.notebook"
    try ChangeDetector.expectSame(
      cli.directory, ByteString("restored/apps/\(app)"), ByteString("view/apps/\(app)/\(name)"))
    let written = try shell("touch view/x; mkdir view/latest/y; rm -r view/latest/apps")
    #expect(written.errors.components(separatedBy: "Read-only file system").count >= 3)
    #expect(try view.unmount() == 0, "\(view.errors)")
    #expect(view.output.hasSuffix("unmounted 'view'\n"), "\(view.output)")
    let part = try MountedView(cli, "--snapshot latest --app notebook", on: "part")
    try ChangeDetector.expectSame(cli.directory, ByteString("restored/apps/\(app)"), "part")
    #expect(part.end(by: SIGINT) == 0 && !part.isMounted)
  }

  @Test func manyReadersAtOnceReadTheirBytes() throws {
    var random = Seeded(11)
    try cli.directory.write(random.bytes(6_000_000), at: "tree/large")
    for number in 0..<40 {
      try cli.directory.write(random.bytes(5000), at: ByteString("tree/small/\(number)"))
    }
    try backUp()
    let view = try MountedView(cli)
    let outcome = try shell(
      """
      for i in $(seq 32); do
        { cmp view/latest/folders/tree/large tree/large && diff -r view/latest/folders/tree tree; } &
      done
      wait
      """)
    #expect(outcome.output.isEmpty && outcome.errors.isEmpty, "\(outcome.output)\(outcome.errors)")
    #expect(view.end(by: SIGTERM) == 0)
  }

  @Test func damagedBlobFailsOnlyItsFile() throws {
    var random = Seeded(12)
    for name: ByteString in ["one", "two", "three"] {
      try cli.directory.write(random.bytes(9_000_000), at: ByteString("tree").appending(name))
    }
    try cli.directory.write("text", at: "tree/zz")
    try backUp()
    let sizes = try cli.packs().map { (Int(try attributes($0).size), $0) }
    let pack = try #require(sizes.max { $0.0 < $1.0 })
    let file = try #require(FileHandle(forUpdatingAtPath: pack.1))
    try file.seek(toOffset: UInt64(pack.0 / 2))
    try file.write(contentsOf: Data([UInt8](repeating: 0xa5, count: 16)))
    try file.close()
    let view = try MountedView(cli)
    let outcome = try shell(
      """
      cd view/latest/folders/tree
      for f in *; do cat $f > /dev/null 2>&1 || echo lost $f; done
      """)
    let lost = outcome.output.split(separator: "\n").filter { $0.hasPrefix("lost") }
    #expect((1...2).contains(lost.count), "\(outcome.output)")
    #expect(view.end(by: SIGTERM) == 13)
    let errors = view.errors
    let reports = errors.components(separatedBy: "warning: snapshots/").count - 1
    #expect(reports == lost.count, "\(errors)")
  }

  private func attributes(_ path: String) throws -> FileStatus {
    try Directory.open(path: ByteString(path).dirname).status(ByteString(path).lastComponent ?? "")
  }

  @Test(arguments: [SIGINT, SIGTERM, SIGHUP]) func signalDetachesAViewInUse(signal: Int32) throws {
    try cli.directory.write("text", at: "tree/file")
    try backUp()
    let view = try MountedView(cli, "--json")
    let held = try #require(FileHandle(forReadingAtPath: view("latest/folders/tree/file")))
    #expect(view.end(by: signal) == 0)
    #expect(!view.isMounted)
    #expect(try FileManager.default.contentsOfDirectory(atPath: view.path).isEmpty)
    let lines = view.output.split(separator: "\n")
    #expect(lines.count == 2 && lines[1].contains(#""by":"signal","was_in_use":true,"damaged":0"#))
    #expect(view.errors.contains("is in use"))
    var fixture = try SchemaFixture(isEmpty: true)
    fixture.add("mount", "mount --json", view.output)
    #expect(try fixture.validate() == [])
    #expect(try cli.names(in: "repo/leases").isEmpty, "the lease is released")
    // The file system is gone, which the close reports.
    try? held.close()
  }

  /// A process that holds a file of a view that has ended is not a running app: the process can be
  /// examined, but not that file.
  @Test func filesOfAnEndedViewBelongToNoApp() throws {
    _ = try cli.succeed("sample device")
    try cli.directory.write("text", at: "tree/file")
    try backUp()
    let view = try MountedView(cli)
    let script = """
      (exec 5< view/latest/folders/tree/file; exec sleep 600) & P=$!
      trap 'kill $P' EXIT
      for i in $(seq 300); do [ "$(cat /proc/$P/comm)" = sleep ] && break; sleep 0.05; done
      kill -9 \(view.number)
      for i in $(seq 300); do stat -L /proc/$P/fd/5 > /dev/null 2>&1 || break; sleep 0.05; done
      stat -L /proc/$P/fd/5 2>&1 | grep -o "Transport.*"
      "$0" purge --root device --level critical --dry-run
      """
    let outcome = try cli.run([], under: ["bash", "-c", script])
    #expect(outcome.output.hasPrefix("Transport endpoint is not connected\n"), "\(outcome.output)")
    #expect(outcome.output.contains("would free"), "\(outcome.output)")
    #expect(!outcome.errors.contains("is running"), "\(outcome.errors)")
    #expect(outcome.code == 0)
  }

  /// A prune beside a mount does not remove the data that it shows, and new snapshots appear.
  @Test func snapshotsComeAndGo() throws {
    try cli.directory.write("first", at: "tree/file")
    try backUp()
    let view = try MountedView(cli)
    let first = try #require(
      try FileManager.default.contentsOfDirectory(atPath: view("snapshots")).first)
    let file = view("snapshots/\(first)/folders/tree/file")
    let held = try #require(FileHandle(forReadingAtPath: file))
    Host.pause(seconds: 1.1)
    try cli.directory.write("second", at: "tree/file")
    try backUp()
    _ = try cli.succeed("forget latest~1 --prune --repo repo")
    #expect(try held.readToEnd() == Data("first".utf8))
    try held.close()
    for _ in 0..<300 where FileManager.default.fileExists(atPath: file) {
      Host.pause(seconds: 0.05)
    }
    #expect(!FileManager.default.fileExists(atPath: file))
    #expect(
      FileManager.default.contents(atPath: view("latest/folders/tree/file"))
        == Data("second".utf8))
    #expect(view.end(by: SIGTERM) == 0)
    #expect(view.errors.contains("note: ") && !view.errors.contains("warning"))
  }

  /// Programs that wait for a store without an answer can be killed, however many there are, and
  /// the mount can then be released.
  @Test func waitingReadersCanBeKilled() throws {
    let program = Shared.packageRoot.appendingPathComponent(
      "Tests/RemoteStorageTests/Programs/store.py")
    let store = try BoundProcess("python3", [program.path])
    let environment = [
      "AWS_ACCESS_KEY_ID": "KEY", "AWS_SECRET_ACCESS_KEY": "SECRET",
      "AWS_ENDPOINT_URL": "http://127.0.0.1:\(store.firstLine)", "no_proxy": "127.0.0.1",
    ]
    for number in 0..<40 {
      try cli.directory.write("\(number)", at: ByteString("tree/\(number)/file"))
    }
    for line in [
      "init s3://bucket/place --plain --no-default",
      "backup --layout folder --root tree --repo s3://bucket/place --quiet",
    ] {
      let words = line.split(separator: " ").map(String.init)
      let outcome = try cli.run(words, environment: environment)
      #expect(outcome.code == 0, "\(line): \(outcome.errors)")
    }
    let view = try MountedView(cli, repo: "s3://bucket/place", environment: environment)
    #expect(try store.ask(#"{"do": "down", "after": 0}"#) == "{}")
    let outcome = try shell(
      """
      for i in $(seq 0 39); do stat view/latest/folders/tree/$i/file > /dev/null 2>&1 & done
      P=$(jobs -p)
      for p in $P; do
        for n in $(seq 600); do [ "$(cat /proc/$p/comm)" != bash ] && break; sleep 0.05; done
      done
      kill -9 $P
      for n in $(seq 600); do [ -z "$(jobs -r)" ] && break; sleep 0.05; done
      jobs -r | wc -l
      """)
    #expect(outcome.output == "0\n", "\(outcome.output)\(outcome.errors)")
    #expect(view.end(by: SIGTERM) == 0 && !view.isMounted, "\(view.errors)")
  }

  private func makeFiles(_ count: Int) throws {
    for number in 0..<count {
      try cli.directory.write("\(number)", at: ByteString("tree/\(number % 7)/\(number)"))
    }
  }

  /// The kernel is informed that a mounted snapshot has no attributes; copies are the same.
  @Test func snapshotWithoutAttributesIsCopied() throws {
    try makeFiles(600)
    try backUp()
    let view = try MountedView(cli, "--snapshot latest")
    #expect(try shell("cp -a view/folders/tree first").code == 0)
    let asked = try shell(
      """
      for i in $(seq 500); do
        getfattr -n user.none view/folders/tree/1/1 2>&1 | grep "not supported" && break
        sleep 0.01
      done
      """)
    #expect(asked.output.contains("not supported"), "\(asked.output)\(asked.errors)")
    let second = try shell("cp -a view/folders/tree second && ls -l view/folders/tree/1")
    #expect(second.code == 0 && second.errors.isEmpty, "\(second.errors)")
    try ChangeDetector.expectSame(cli.directory, "tree", "first")
    try ChangeDetector.expectSame(cli.directory, "tree", "second")
    #expect(view.end(by: SIGTERM) == 0)
  }

  /// Attributes of a snapshot that is made after many files without attributes were copied are
  /// shown.
  @Test func attributesOfLaterSnapshotsAreShown() throws {
    try makeFiles(600)
    try backUp()
    let view = try MountedView(cli)
    #expect(try shell("cp -a view/latest/folders/tree first").code == 0)
    Host.pause(seconds: 1.1)
    guard try shell("setfattr -n user.later -v value tree/1/1").code == 0 else { return }
    try backUp()
    let shown = try shell(
      """
      for i in $(seq 500); do
        getfattr -d view/latest/folders/tree/1/1 | grep user.later && break
        sleep 0.02
      done
      """)
    #expect(shown.output == "user.later=\"value\"\n", "\(shown.output)\(shown.errors)")
    #expect(view.end(by: SIGTERM) == 0)
  }

  @Test func unusableDirectoryIsRefused() throws {
    try cli.directory.write("text", at: "tree/inner/file")
    try backUp()
    for name in ["tree/hole", "repo/hole", "free", "used"] {
      _ = try Directory.make(path: cli.directory.path(ByteString(name)))
    }
    let used =
      Host.userID == 0 ? try Mount(inMemory: "size=1m", on: cli.directory.path("used")) : nil
    for (name, reason) in [
      ("none", "there is no such directory"), ("tree/inner", "it is not empty"),
      ("tree/inner/file", "it is not a directory"), ("repo/hole", "it is in the repository"),
      ("tree/hole", "it is in the source"), ("used", "it is already a mount"),
    ] where name != "used" || used != nil {
      let outcome = try cli.run("mount \(name) --repo repo")
      #expect(outcome.code == 2 && outcome.errors.contains(reason), "\(name): \(outcome.errors)")
    }
    let missing = try cli.run("mount free --app none --repo repo")
    #expect(missing.code == 1 && missing.errors.contains("no snapshot has such an app"))
    withExtendedLifetime(used) {}
  }

  /// The user of a directory above the view moves it, and puts a link to another mount there.
  @Test(.enabled(if: Host.userID == 0)) func rootUnmountsOnlyItsOwnView() throws {
    try cli.directory.write("text", at: "tree/file")
    try backUp()
    let view = try MountedView(cli, on: "a/view")
    _ = try Directory.make(path: cli.directory.path("other/view"))
    let other = try Mount(inMemory: "size=1m", on: cli.directory.path("other/view"))
    let directory = try Directory.open(path: cli.directory.path)
    try directory.rename("a", to: "b", in: directory)
    try directory.createLink("a", to: "other")
    defer {
      try? directory.remove("a")
      try? directory.rename("b", to: "a", in: directory)
    }
    #expect(view.end(by: SIGTERM) == 0)
    let mounts = try String(contentsOfFile: "/proc/self/mounts", encoding: .utf8)
    #expect(!mounts.contains(" \(cli.directory.string)/b/view "), "\(mounts)")
    #expect(mounts.contains(" \(cli.directory.string)/other/view tmpfs "), "\(mounts)")
    withExtendedLifetime((view, other)) {}
  }

  /// Without FUSE the error names the commands that need none.
  @Test(.enabled(if: Host.userID == 0)) func withoutFuseOtherCommandsAreNamed() throws {
    // Not in /dev/shm, because /dev is covered.
    let cli = try CommandLine()
    try cli.directory.write("text", at: "tree/file")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    _ = try Directory.make(path: cli.directory.path("free"))
    let script = "mount -t tmpfs tmpfs /dev && exec \"$0\" mount free --repo repo"
    let outcome = try cli.run([], under: ["unshare", "-m", "bash", "-c", script])
    #expect(outcome.code == 1)
    let errors = outcome.errors
    #expect(errors.contains("restore") && errors.contains("dump"), "\(errors)")
  }

  /// A user without privileges mounts through fusermount3, and sees everything in the repository.
  @Test(.enabled(if: Host.userID == 0 && Program.exists("fusermount3")))
  func usersMountTheirOwnRepository() throws {
    try cli.directory.write("text", at: "tree/file")
    try cli.directory.directory.directory("tree").setPermissions(0o400, of: "file")
    try backUp()
    let script = """
      chmod 0755 . && mkdir view && chown -R 65534:65534 repo view home && chmod 0666 /dev/fuse
      as="setpriv --reuid=65534 --regid=65534 --clear-groups"
      $as "$0" mount view --repo repo > out 2> err & P=$!
      trap 'umount -l view 2> /dev/null; kill -9 $P 2> /dev/null' EXIT
      for i in $(seq 300); do grep -q "$PWD/view fuse" /proc/mounts && break; kill -0 $P || break; sleep 0.05; done
      $as cat view/latest/folders/tree/file
      cat view/latest/folders/tree/file 2> /dev/null && echo "root has access"
      kill -TERM $P; wait $P; echo " $?"; cat err >&2
      """
    let outcome = try cli.run(
      [], under: ["bash", "-c", script], environment: TestEncryption.environmentOfNobody)
    #expect(outcome.output == "text 0\n", "\(outcome.output)\(outcome.errors)")
  }
}
