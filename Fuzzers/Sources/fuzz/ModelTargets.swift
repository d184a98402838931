import Codecs
import Migration
import PolicyEngine
import Scenario
import SystemIO

@testable import AppPackages
@testable import DeviceDiscovery
@testable import PolicyEngine
@testable import SandboxModel

extension Target {
  /// The files in devices and the files that users provide.
  static let modelTargets = [
    Target(name: "property-list", run: propertyList),
    Target(name: "key-file", run: keyFile),
    Target(name: "unit-file", run: unitFile),
    Target(name: "mach-o", run: machO),
    Target(name: "package", run: package),
    Target(name: "migration", run: migration),
    Target(name: "json", run: json),
    Target(name: "policy", run: policy),
    Target(name: "migration-table", run: migrationTable),
    Target(name: "rewrite", run: rewrite),
    Target(name: "scenario", run: scenario),
  ]

  /// A property list of either kind, as in Info.plist and container metadata.
  @Sendable private static func propertyList(_ bytes: [UInt8]) {
    let limits = PropertyList.Limits(bytes: 1 << 20, depth: 64, objects: 100_000)
    guard let list = try? PropertyList(reading: bytes, limits: limits) else { return }
    var entitlements = Entitlements()
    entitlements.add(list, from: .signature)
    _ = list["MCMMetadataIdentifier"]?.stringValue
    checkBundle(bytes)
    checkMetadata(bytes)
  }

  /// The facts of a bundle in its Info.plist.
  private static func checkBundle(_ bytes: [UInt8]) {
    var survey = Survey(root: "/")
    guard let list = survey.dictionary(bytes, as: "Info.plist") else { return }
    let info = survey.bundleInfo(of: list, as: "Info.plist")
    require(
      info.identifier.map { BundleIdentifier.fault(of: $0.bytes) == nil } ?? true,
      "a bundle has an invalid identifier")
  }

  /// The metadata of a container, which a restore writes with another UUID.
  private static func checkMetadata(_ bytes: [UInt8]) {
    let files = try? ContainerMetadata.files(
      of: .data, identifier: nil, uuid: "NEW", layout: .coreSimulator, stored: bytes,
      isSameDirectory: false)
    // Values that a binary list shares are written repeatedly.
    for file in files.map({ Array($0.values) }) ?? [] where file.count < 1 << 20 {
      guard let list = try? PropertyList(reading: file) else {
        fatalError("metadata cannot be read after it was written")
      }
      require(list["MCMMetadataUUID"] == .string("NEW"), "metadata has another UUID")
    }
  }

  /// Flatpak's metadata and related files, and dpkg's status file, whose versions are numbers.
  @Sendable private static func keyFile(_ bytes: [UInt8]) {
    for version in DebianPackages(parsing: bytes).versions.values {
      let text = version.version?.bytes ?? []
      require(
        !text.isEmpty && text.allSatisfy { (0x30...0x39).contains($0) || $0 == 0x2E },
        "a version is not a number")
    }
    _ = KeyValueFile(bytes).value("Name", in: "Desktop Entry")
    _ = FlatpakFinder.Metainfo.newestRelease(in: bytes)
    _ = Entitlements.propertyList(inProfile: bytes)
  }

  /// A systemd unit file. Each path that its words name must be below the base directory.
  @Sendable private static func unitFile(_ bytes: [UInt8]) {
    var settings = UnitSettings()
    settings.apply(UnitFile(bytes))
    settings.apply(UnitFile(bytes))
    require(settings.words.count <= UnitFile.Limit.directories, "too many directories are used")
    let names: [ByteString] = ["a-b.service", "a@.service", "a@b.socket"]
    for unit in names.compactMap({ UnitName($0) }) {
      for word in settings.words {
        guard case .path(let path) = UnitFile.path(word.text, of: unit) else { continue }
        require(
          !path.isAbsolute && !path.isEmpty && !path.hasNUL
            && !path.components.contains { $0 == "." || $0 == ".." },
          "a directory is not below its base: \(path)")
      }
    }
    _ = AndroidFinder.packages(in: bytes)
    if let unit = UnitName(ByteString(bytes.prefix(300))) { _ = unit.dropInDirectories }
  }

  /// An executable with entitlements.
  @Sendable private static func machO(_ bytes: [UInt8]) {
    guard let file = try? Descriptor.inMemory(bytes) else { return }
    for found in (try? MachO.entitlements(in: file)) ?? [] {
      require(found.propertyList.count <= Entitlements.limit, "the entitlements exceed their limit")
    }
  }

  /// An archive with an app. Accepted entries must stay in the bundle and have the claimed sizes.
  @Sendable private static func package(_ bytes: [UInt8]) {
    let limits = PackageLimits(entries: 1000, ratioFloor: 1 << 20, availableBytes: 16 << 20)
    guard let file = try? Descriptor.inMemory(bytes),
      let package = try? Package.archive(
        file, limits: limits, fault: PackageFault(path: "fuzz.ipa")),
      var entries = try? package.entries()
    else { return }
    require(package.app.identifier.fault == nil, "an invalid identifier was accepted")
    var buffer = [UInt8](repeating: 0, count: 4096)
    var directories: Set<ByteString> = [""]
    while let entry = try? entries.next() {
      let parts = entry.path.components
      require(
        parts.first == package.app.bundleDirectory && !parts.contains(".."),
        "an entry outside the bundle was accepted")
      require(
        directories.contains(entry.path.parent), "an entry has no parent directory")
      switch entry.kind {
      case .directory: directories.insert(entry.path)
      case .link(let target): require(!target.isAbsolute, "a link outside was accepted")
      case .file(let size):
        var read = 0
        do {
          while case let count = try entries.read(into: &buffer), count > 0 { read += count }
        } catch { return }
        require(UInt64(read) == size, "a file does not have its claimed size")
      }
    }
  }

  /// A container migration. It must not move anything from or to a path outside the home directory.
  @Sendable private static func migration(_ bytes: [UInt8]) {
    guard let app = BundleIdentifier("com.example.x"),
      let migration = try? ContainerMigration(reading: bytes, for: app)
    else { return }
    for path in migration.links + migration.moves.flatMap({ [$0.source, $0.destination] }) {
      require(
        PackageEntry.Name.fault(of: path, depth: .max, foreign: false) == nil,
        "an invalid path was accepted")
    }
  }

  /// JSON. An accepted text must be equal after writing and reading it again.
  @Sendable private static func json(_ bytes: [UInt8]) {
    guard let json = try? JSON(parsing: bytes) else { return }
    require(
      (try? JSON(parsing: json.compactBytes)) == json,
      "JSON changed when it was written and read again")
  }

  /// The text of a policy.
  @Sendable private static func policy(_ bytes: [UInt8]) {
    let source = PolicySource(name: "fuzz.yaml", bytes: bytes, origin: .commandLine)
    let (document, issues) = PolicyDocument.read(source)
    require(document != nil || !issues.isEmpty, "a policy was refused without a reason")
  }

  /// The text of a scenario.
  @Sendable private static func scenario(_ bytes: [UInt8]) {
    let (document, issues) = ScenarioDocument.read(
      PolicySource(name: "fuzz.yaml", bytes: bytes, origin: .commandLine))
    require((document != nil) == issues.isEmpty, "a scenario with mistakes was accepted")
    if let document { require(!document.versions.isEmpty, "a scenario has no version") }
  }

  /// The text of a migration table. The destinations of an accepted table must be in the home
  /// directory.
  @Sendable private static func migrationTable(_ bytes: [UInt8]) {
    let (table, issues) = MigrationTable.read(
      PolicySource(name: "fuzz.yaml", bytes: bytes, origin: .commandLine))
    require(table != nil || !issues.isEmpty, "a table was refused without a reason")
    guard let table, issues.isEmpty else { return }
    for example in table.examples {
      let route = MigrationRoute(
        from: MigrationEnd(example.from, app: "a.b", home: "/h"),
        to: MigrationEnd(example.to, app: "a.b", home: "/h"),
        table: table, general: nil, names: .anyName)
      guard case .path(let path) = route.destination(of: example.path.inHome(of: route.from)) else {
        continue
      }
      require(
        !path.isAbsolute && !path.components.contains(".."), "a path leaves the home directory")
    }
  }

  /// A configuration file with paths; the first byte selects the rule. A rewritten file must be
  /// accepted again, and rewriting it once more must change nothing.
  @Sendable private static func rewrite(_ bytes: [UInt8]) {
    guard let first = bytes.first else { return }
    let rule = RewriteRule.allCases[Int(first) % RewriteRule.allCases.count]
    let mapping = PathMapping([.init(old: "/home/u/.a", new: "/home/u/new")])
    guard let once = try? rule.rewrite(Array(bytes.dropFirst()), by: mapping) else { return }
    require(once.changes.isEmpty == (once.bytes == Array(bytes.dropFirst())), "a silent change")
    guard let twice = try? rule.rewrite(once.bytes, by: mapping) else {
      require(once.bytes.count > rule.maximumSize, "the result was refused")
      return
    }
    require(twice.changes.isEmpty && twice.bytes == once.bytes, "the result changed again")
  }
}
