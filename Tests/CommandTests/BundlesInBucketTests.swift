import Foundation
import SystemIO
import TestSupport
import Testing

/// `backup --with-bundles`: bundles in a bucket, which otherwise has none.
struct BundlesInBucketTests {
  private let fixture: S3CommandFixture
  private var cli: CommandLine { fixture.cli }
  private static let bundle = "apps/org.example.notebook/bundle/Notebook.app"
  private static let info = bundle + "/Info.plist"
  /// A note that the app excludes from backups to a cloud.
  private static let note = "apps/org.example.notebook/data/Documents/Notes/Recipes.md"
  private static let place = "--repo s3://bucket/place"

  init() throws {
    fixture = try S3CommandFixture()
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("exclude \(Self.note) --root device --for cloud")
  }

  private func makeBucket() throws {
    _ = try fixture.succeed("init s3://bucket/place --plain --no-default")
  }

  /// Backs the device up and returns the entries of the snapshot.
  private func list(_ options: String = "", to place: String = place) throws -> String {
    _ = try fixture.succeed("backup --root device \(options) \(place)")
    return try fixture.succeed("ls latest --recursive \(place)")
  }

  /// The plan of a dry run.
  private func plan(_ options: String = "") throws -> [String: Any] {
    try cli.json("backup --root device --dry-run --json \(Self.place) \(options)")
  }

  /// The paths of the exclusions with a hint.
  private func hints(_ plan: [String: Any]) throws -> [String] {
    let excluded = try #require(plan["left_out"] as? [[String: Any]])
    return excluded.filter { ($0["hint"] as? String)?.contains("--with-bundles") == true }
      .compactMap { $0["path"] as? String }
  }

  private func files(_ plan: [String: Any]) -> Int {
    (plan["keeps"] as? [String: Any])?["files"] as? Int ?? 0
  }

  @Test func aPlanNamesTheOptionForBundlesOnly() throws {
    let (without, with) = (try plan(), try plan("--with-bundles"))
    let named = try hints(without)
    #expect(named.contains(Self.bundle), "\(named)")
    #expect(named.allSatisfy { $0.contains("/bundle") })
    #expect(try hints(with).isEmpty)
    #expect(files(with) > files(without))
    #expect(with["policy_digest"] as? String == without["policy_digest"] as? String)
    // The option would not store a bundle that another option excludes.
    #expect(try hints(plan("--exclude Notebook.app")).contains(Self.bundle) == false)
  }

  /// The snapshot that an export makes of a device has bundles if they are requested.
  @Test(arguments: [false, true]) func anExportStoresBundlesIfRequested(isRequested: Bool) throws {
    try makeBucket()
    let option = isRequested ? " --with-bundles" : ""
    let line = "export itunes --from-device device phone \(Self.place)"
    // A name that is not UTF-8 is not exported.
    let exported = try fixture.run(line + option)
    #expect(exported.code == 3, "\(exported.errors)")
    let stored = try fixture.succeed("ls latest --recursive \(Self.place)")
    #expect(stored.contains(Self.info) == isRequested)
    #expect(!stored.contains(Self.note))
  }

  @Test func aReportNamesTheOption() throws {
    try makeBucket()
    let line = "backup --root device \(Self.place)"
    let without = try fixture.run(line)
    #expect(without.errors.contains("note: not in the snapshot: "), "\(without.errors)")
    #expect(without.errors.contains("'--with-bundles'"))
    #expect(try !fixture.run(line + " --quiet").errors.contains("--with-bundles"))
    #expect(try !fixture.run(line + " --with-bundles").errors.contains("--with-bundles"))
    let report = try CommandLine.object(fixture.succeed(line + " --json"))
    #expect(try hints(#require(report["plan"] as? [String: Any])).contains(Self.bundle))
  }

  /// A backup with bundles and one without are based on each other, and each has its expected
  /// content.
  @Test func bundlesComeAndGoWithTheOption() throws {
    try makeBucket()
    let without = try list()
    let with = try list("--with-bundles")
    #expect(!without.contains(Self.bundle) && with.contains(Self.info))
    #expect(!without.contains(Self.note) && !with.contains(Self.note))
    #expect(try list() == without)
    #expect(try list("--with-bundles") == with)
    #expect(try list("--with-bundles") == with)
    #expect(try list() == without)
  }

  @Test func storedBundlesAreRestored() throws {
    try makeBucket()
    _ = try list()
    _ = try list("--with-bundles")
    let bundle = try #require(
      cli.containers(of: "device").first { $0.path == "apps/org.example.notebook/bundle" }
    ).realPath.appending("Notebook.app")
    _ = try fixture.succeed("restore latest:\(Self.bundle) --to back \(Self.place)")
    let found = try Program.run("find", ["back", "-name", "Info.plist"], in: cli.directory.url)
    let top = try #require(
      found.output.split(separator: "\n").min { $0.utf8.count < $1.utf8.count }
    ).dropLast("/Info.plist".count)
    let compared = try Program.run(
      "diff", ["-r", String(top), bundle.description], in: cli.directory.url)
    #expect(compared.code == 0, "\(compared.output)")
    // In place, a changed file of the bundle is the stored one again, with nothing beside it, and
    // an added one is removed.
    let names = try FileManager.default.contentsOfDirectory(atPath: bundle.description)
    let file = URL(fileURLWithPath: "\(bundle)/Notebook")
    let before = try Data(contentsOf: file)
    try (before + Data("\n".utf8)).write(to: file)
    try Data("added".utf8).write(to: URL(fileURLWithPath: "\(bundle)/added"))
    _ = try fixture.succeed("restore latest --app notebook --in-place --delete \(Self.place)")
    #expect(try Data(contentsOf: file) == before)
    let after = try FileManager.default.contentsOfDirectory(atPath: bundle.description)
    #expect(after.sorted() == names.sorted())
  }

  /// `explain` and `classify` report the content of a snapshot.
  @Test(arguments: ["", "--with-bundles"])
  func explanationsAgreeWithTheSnapshot(_ option: String) throws {
    try makeBucket()
    let stored = try list(option)
    let other = "apps/org.example.notebook/data/Documents/Notes/Groceries.md"
    for path in [Self.info, Self.note, other] {
      let isStored = stored.contains(path)
      let line = "--root device --for cloud --json \(option) \(path)"
      let explained = try cli.json("explain " + line)["backup"] as? String
      #expect((explained != "never") == isStored, "\(path): \(explained ?? "")")
      let classified = try cli.jsonLines("classify " + line).last?["stored"] as? String
      #expect((classified == "kept") == isStored, "\(path): \(classified ?? "")")
      let text = try cli.run(
        ["classify", "--stdin0", "--layout", "coresimulator", "--for", "cloud", "--json"]
          + (option.isEmpty ? [] : [option]), input: Array(path.utf8))
      // Without a device no mark is known.
      if path == Self.note { continue }
      #expect(try CommandLine.object(text.output)["stored"] as? String == classified)
    }
  }

  /// Repositories outside a bucket have the bundles in any case.
  @Test(arguments: [false, true])
  func theOptionChangesNothingElsewhere(isEncrypted: Bool) throws {
    let kind = isEncrypted ? "--recipient \(try cli.makeKey())" : "--plain"
    _ = try cli.succeed("init local \(kind) --no-default")
    let key = isEncrypted ? " --identity key" : ""
    let line = "backup --root device --dry-run --json --repo local"
    #expect(try cli.succeed(line) == cli.succeed(line + " --with-bundles"))
    let without = try list("", to: "--repo local" + key)
    #expect(without.contains(Self.info) && without.contains(Self.note))
    #expect(try list("--with-bundles", to: "--repo local" + key) == without)
    let unchanged = try cli.run(
      "backup --root device --with-bundles --fail-if-unchanged --repo local" + key)
    #expect(unchanged.code == 4, "\(unchanged.errors)")
  }

  @Test func configurationsAndSchedulesHaveTheOption() throws {
    let line = try cli.succeed("schedule install --cron --dry-run -- --with-bundles")
    #expect(line.contains("--with-bundles"), "\(line)")
    try cli.directory.write(
      "backup:\n  with-bundles: true\n", at: "home/.config/sandboxctl/config.yaml")
    #expect(try hints(plan()).isEmpty)
  }
}
