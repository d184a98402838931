import AppUpdate
import ArchiveStore
import Backup
import DeviceDiscovery
import DeviceScan
import DeviceTransaction
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport

@testable import AppPackages

/// An app's package in memory.
struct MemoryPackage: PackageEntrySource {
  let app: AppPackage
  private let entries: [(entry: PackageEntry, bytes: [UInt8])]
  private var position = 0
  private var done = 0

  /// A package with the given files, by their paths in the bundle.
  init(
    _ identifier: String = UpdateFixture.app, version: String = "2.0", build: String = "20",
    extensions: [(identifier: String, build: String)] = [], shape: BundleShape = .flat,
    groups: [String] = [], migration: ContainerMigration? = nil, files: [String: String] = [:]
  ) {
    let info = shape == .flat ? "Info.plist" : "Contents/Info.plist"
    var all = files
    all[info] = UpdateFixture.info(identifier, version, build)
    for item in extensions {
      let name = item.identifier.split(separator: ".").last.map(String.init) ?? "x"
      let above =
        shape == .flat ? "PlugIns/\(name).appex" : "Contents/PlugIns/\(name).appex/Contents"
      all["\(above)/Info.plist"] = UpdateFixture.info(item.identifier, version, item.build)
    }
    var entries: [String: (PackageEntry, [UInt8])] = [:]
    let time = Timestamp(seconds: 1_600_000_000)
    for (path, text) in all {
      let parts = ["Example.app"] + path.split(separator: "/").map(String.init)
      for count in 1..<parts.count {
        let directory = parts.prefix(count).joined(separator: "/")
        entries[directory] = (
          PackageEntry(
            path: ByteString(directory), kind: .directory, permissions: 0o755, modified: time),
          []
        )
      }
      let whole = parts.joined(separator: "/")
      entries[whole] = (
        PackageEntry(
          path: ByteString(whole), kind: .file(size: UInt64(text.utf8.count)), permissions: 0o644,
          modified: time), Array(text.utf8)
      )
    }
    self.entries = entries.sorted { $0.key < $1.key }.map { ($0.value.0, $0.value.1) }
    var size = AppPackage.Size(
      entries: entries.count, bytes: all.values.reduce(0) { $0 + UInt64($1.utf8.count) })
    for entry in entries.values { size.allocate(entry.0.kind) }
    app = AppPackage(
      origin: AppPackage.Origin(path: "/new/Example.app", form: .directory),
      bundleDirectory: "Example.app",
      shape: shape, identifier: UpdateFixture.id(identifier),
      version: ByteString(version), build: ByteString(build),
      extensions: extensions.map {
        App.Extension(
          identifier: UpdateFixture.id($0.identifier), displayName: nil,
          version: ByteString(version), build: ByteString($0.build),
          path: "Example.app/PlugIns/x.appex")
      },
      groups: groups.map {
        App.GroupMembership(group: UpdateFixture.id($0), basis: .known(.signature))
      }, migration: migration,
      size: size)
  }

  mutating func next() throws(ModelError) -> PackageEntry? {
    guard position < entries.count else { return nil }
    (position, done) = (position + 1, 0)
    return entries[position - 1].entry
  }

  mutating func read(into buffer: inout [UInt8]) throws(ModelError) -> Int {
    let rest = entries[position - 1].bytes[done...].prefix(buffer.count)
    buffer.replaceSubrange(0..<rest.count, with: rest)
    done += rest.count
    return rest.count
  }
}

/// A simulator's device with one app, an extension of it and a group, and a repository.
struct UpdateFixture {
  let base: Fixture
  static let app = "org.example.one"
  static let old: ByteString = "0A0A0A0A-0000-4000-8000-000000000001"
  static let plugIn: ByteString = "0B0B0B0B-0000-4000-8000-000000000002"
  static let bundle: ByteString = "0C0C0C0C-0000-4000-8000-000000000003"
  static let metadata: ByteString = ".com.apple.mobile_container_manager.metadata.plist"

  var root: ByteString { base.directory.path("phone") }
  var data: ByteString { "phone/Containers/Data/Application" }

  init(inMemory: Bool = true, isInstalled: Bool = true) throws {
    base = try Fixture(inMemory: inMemory)
    for location: ByteString in ["Bundle/Application", "Data/Application", "Shared/AppGroup"] {
      _ = try Directory.make(path: base.directory.path("phone/Containers").appending(location))
    }
    if isInstalled { try makeApp() }
  }

  static func info(_ identifier: String, _ version: String, _ build: String) -> String {
    """
    <plist><dict><key>CFBundleIdentifier</key><string>\(identifier)</string>
    <key>CFBundleShortVersionString</key><string>\(version)</string>
    <key>CFBundleVersion</key><string>\(build)</string></dict></plist>
    """
  }

  private static func metadata(_ identifier: String, _ uuid: ByteString) -> String {
    """
    <plist><dict><key>MCMMetadataIdentifier</key><string>\(identifier)</string>
    <key>MCMMetadataUUID</key><string>\(uuid)</string>
    <key>MCMMetadataInfo</key><dict><key>kept</key><string>yes</string></dict></dict></plist>
    """
  }

  private func makeApp() throws {
    let bundle = ByteString("phone/Containers/Bundle/Application").appending(Self.bundle)
    let app = bundle.appending("Example.app")
    try put(Self.info(Self.app, "1.0", "10"), app.appending("Info.plist"))
    try put("old program", app.appending("Example"))
    try put(
      Self.info("\(Self.app).share", "1.0", "10"), app.appending("PlugIns/share.appex/Info.plist"))
    let data = data.appending(Self.old)
    try put(Self.metadata(Self.app, Self.old), data.appending(Self.metadata))
    for (path, text) in [
      "Documents/thesis.txt": "a thesis", "Documents/deep/er/note": "note",
      "Library/Preferences/\(Self.app).plist": "settings", "Library/Caches/img/a.png": "picture",
      "Library/Application Support/db.sqlite": "SQLite format 3", "tmp/upload": "temporary",
      "StoreKit/receipt": "unknown",
    ] {
      try put(text, data.appending(ByteString(path)))
    }
    let home = try Directory.open(path: base.directory.path(data))
    let own = base.directory.path(data).appending("Library")
    try home.directory("Documents").createLink("own", to: own.appending("Caches"))
    try home.directory("Documents").createLink(
      "seen", to: ByteString("/private/var/mobile/Containers/Data/Application/\(Self.old)/tmp"))
    try home.directory("Documents").createLink("foreign", to: "/usr/share/dict")
    let share = ByteString("phone/Containers/Data/PluginKitPlugin").appending(Self.plugIn)
    try put(Self.metadata("\(Self.app).share", Self.plugIn), share.appending(Self.metadata))
    try put("draft", share.appending("Documents/draft"))
  }

  func put(_ text: String, _ path: ByteString) throws { try base.directory.write(text, at: path) }

  /// Writes a file in the app's data container, wherever it is now.
  func write(_ text: String, _ inner: ByteString) throws {
    let file = try dataDirectory().appending(inner)
    try Directory.make(path: file.parent).openOrCreate(file.lastComponent ?? "").write(
      Array(text.utf8))
  }

  /// The absolute path of the app's current data container.
  func dataDirectory() throws -> ByteString {
    let app = LogicalName(ByteString(Self.app))
    guard let container = try device().container(.data(app)) else { throw Fixture.Missing() }
    return container.absolutePath
  }

  func device() throws -> Device {
    try DeviceFinder(machineID: "m", systemFlatpak: nil).find(root)
  }

  static let identifier = id(app)

  /// A valid bundle identifier.
  static func id(_ text: String) -> BundleIdentifier {
    guard let identifier = BundleIdentifier(ByteString(text)) else {
      preconditionFailure("'\(text)' is no identifier")
    }
    return identifier
  }

  func scan(_ overlays: [String] = []) throws -> DeviceScan {
    let device = try device()
    return DeviceScan.run(
      device, policy: try PurgeFixture.policy(overlays),
      options: ScanOptions(destination: Destination(isUnencrypted: true))
    ) { AppChangePlan.isConcerned($0, by: Self.identifier, on: device) }
  }

  func plan(
    _ change: AppChange, _ package: MemoryPackage?, _ overlays: [String] = [],
    _ adapt: (inout AppChangeRequest) -> Void = { _ in }
  ) throws -> AppChangePlan {
    var request = AppChangeRequest(change, of: Self.identifier, package: package?.app)
    request.isForced = true
    adapt(&request)
    return AppChangePlan.make(try scan(overlays), request)
  }

  /// Plans and executes an operation.
  @discardableResult
  func run(
    _ change: AppChange, _ package: MemoryPackage, _ overlays: [String] = [],
    _ adapt: (inout AppChangeRequest) -> Void = { _ in }
  ) throws -> AppChangeReport {
    try carryOut(plan(change, package, overlays, adapt), package)
  }

  @discardableResult
  func carryOut(_ plan: AppChangePlan, _ package: MemoryPackage) throws -> AppChangeReport {
    var source = package
    return try AppChangeOperation(plan, saving: SafetySnapshotMaker(request, in: base.repository))
      .run(&source)
  }

  var request: BackupRequest { base.request(keeping: "cache") }

  /// The entries of the device, without the program's own files.
  func records() throws -> [ByteString: TreeRecord] {
    try base.records("phone").filter { path, _ in
      !path.components.contains { OwnNames.has($0) }
    }
  }

  /// The text of each file in the trash, by its path in the operation's directory.
  func trash() throws -> [ByteString: String] {
    guard (try? base.names("phone/.sandboxctl/trash")) != nil else { return [:] }
    var found: [ByteString: String] = [:]
    for (path, record) in try base.records("phone/.sandboxctl/trash") where record.kind == .file {
      let inner = path.components.dropFirst().map(\.bytes).joined(separator: [UInt8(ascii: "/")])
      found[ByteString(inner)] = try base.text(
        ByteString("phone/.sandboxctl/trash").appending(path))
    }
    return found
  }
}
