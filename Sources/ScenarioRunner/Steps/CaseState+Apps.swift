internal import AppPackages
internal import AppUpdate
internal import ArchiveStore
internal import Backup
internal import Codecs
internal import DeviceTransaction
internal import SandboxModel
internal import Scenario
internal import SystemIO

/// The operations on apps.
extension CaseState {
  /// Updates an app to a package, or to its current bundle with another version.
  func update(_ wanted: ScenarioAction.Update) throws {
    let app = try app(wanted.app)
    let path: ByteString =
      switch wanted.source {
      case .package(let path): document.resolved(path)
      case .version(let version): try makePackage(of: app, version: version)
      }
    let package = try Package(opening: path)
    guard package.app.identifier == app else {
      throw OperationError(
        .failed, code: .wrongPackage, "update", subject: app,
        reason: "the package is of '\(package.app.identifier)'")
    }
    var request = AppChangeRequest(.update, of: app, package: package.app)
    request.isStrict = wanted.isStrict
    let preparation = try prepare(savesFirst: true)
    let plan = try preparation.plan(
      request, savingTo: repository().storage, at: DeviceFacts.destination,
      isStopping: isStopping)
    var entries = try package.entries()
    let operation = try operation(plan)
    try requireComplete(try carryOut { try operation.run(&entries) }, of: "update", app)
  }

  /// Removes an app's bundle, and keeps its data.
  func offload(_ name: ByteString) throws {
    let app = try app(name)
    let preparation = try prepare(savesFirst: false)
    let plan = try preparation.plan(
      AppChangeRequest(.offload, of: app), savingTo: nil, at: DeviceFacts.destination,
      isStopping: isStopping)
    let operation = try operation(plan)
    try requireComplete(try carryOut { try operation.run() }, of: "offload", app)
  }

  /// Returns to the state before the last update of an app.
  func rollBack(_ wanted: ScenarioAction.Rollback) throws {
    let app = try app(wanted.app)
    let repository = try repository()
    let reader = try repository.beginReading(cache: repository.indexCache(in: cache))
    var request = AppChangeRequest(.rollback, of: app)
    request.data = wanted.data.flatMap { AppChangeRequest.DataChoice(rawValue: $0.rawValue) }
    let preparation = try prepare(savesFirst: true)
    let plan = try preparation.rollbackPlan(
      request, savingTo: repository.storage, at: DeviceFacts.destination,
      from: (repository, reader), heads: nil, isStopping: isStopping)
    let operation = try operation(plan, from: reader)
    try requireComplete(try carryOut { try operation.run() }, of: "roll back", app)
  }

  private func prepare(savesFirst: Bool) throws -> AppChangePreparation {
    try AppChangePreparation(
      isForced: true, savesFirst: savesFirst, isPreview: false, find: copy.find,
      compile: { _ in policy }, notify: { _, _ in })
  }

  private func operation(
    _ plan: AppChangePlan, from reader: RepositoryReader? = nil
  ) throws -> AppChangeOperation {
    let saving = SafetySnapshotMaker(backupRequest, in: try repository())
    return AppChangeOperation(plan, saving: saving, from: reader, isStopping: isStopping)
  }

  private func requireComplete(
    _ report: AppChangeReport, of verb: String, _ app: BundleIdentifier
  ) throws {
    guard interruption == nil, let first = (report.failed + report.lateChanges).first else {
      return
    }
    throw OperationError(
      .failed, verb, subject: app, reason: "'\(first.path)': \(first.remark)")
  }

  // MARK: - Packages

  /// Makes a package of an app's current bundle, with another version of the app and of its
  /// extensions. Returns its path.
  private func makePackage(of app: BundleIdentifier, version: String) throws -> ByteString {
    let bundle = try device().containers.first { $0.kind == .bundle && $0.owner == app }
    guard let bundle, let name = bundle.bundleDirectory?.lastComponent else {
      throw OperationError(
        .failed, code: .appNotInstalled, "make a package of", subject: app,
        reason: "the app is not installed", hint: "give a package instead of a version")
    }
    packages += 1
    let path = directory.appending(ByteString("package-\(packages)")).appending(name)
    let source = try Directory.open(
      resolved: bundle.absolutePath.appending(bundle.bundleDirectory ?? ""))
    try TreeCopy.run(
      source, to: try Directory.make(resolved: path, permissions: 0o700), isStopping: isStopping)
    var cursor = try DirectoryCursor(root: Directory.open(resolved: path))
    for directory in try Self.bundles(in: &cursor) {
      try cursor.move(to: directory)
      try cursor.withDirectory { directory in try Self.set(version, in: directory) }
    }
    return path
  }

  /// Returns the directories with the property list of the app, and of each of its extensions.
  private static func bundles(in cursor: inout DirectoryCursor) throws -> [[ByteString]] {
    var found: [[ByteString]] = []
    let contents: [[ByteString]] = [[], ["Contents"]]
    for directory in contents where try has("Info.plist", in: directory, &cursor) {
      found.append(directory)
    }
    for directory in contents where try has("PlugIns", in: directory, &cursor) {
      let plugIns = directory + ["PlugIns"]
      try cursor.move(to: plugIns)
      let names = try cursor.withDirectory { plugIns in try plugIns.names() }
      for name in names where name.hasSuffix(".appex") {
        for inner in contents where try has("Info.plist", in: plugIns + [name] + inner, &cursor) {
          found.append(plugIns + [name] + inner)
        }
      }
    }
    return found
  }

  private static func has(
    _ name: ByteString, in path: [ByteString], _ cursor: inout DirectoryCursor
  ) throws -> Bool {
    do throws(SystemError) {
      return try cursor.withDirectory(at: path) { directory throws(SystemError) in
        try directory.statusIfPresent(name) != nil
      }
    } catch {
      if error.isMissing { return false }
      throw error
    }
  }

  /// Sets the version and the build in the property list of a bundle.
  private static func set(_ version: String, in directory: borrowing Directory) throws {
    let name: ByteString = "Info.plist"
    let bytes = try directory.file(name).readAll(limit: PropertyList.Limits().bytes) ?? []
    let keys = ["CFBundleShortVersionString", "CFBundleVersion"]
    let others = (try PropertyList(reading: bytes).dictionaryValue ?? []).filter {
      !keys.contains($0.key)
    }
    let list = PropertyList.dictionary(
      others + keys.map { PropertyList.Member($0, .string(version)) })
    let mode = try directory.status(name).permissions
    try directory.remove(name)
    let file = try directory.create(name, permissions: 0o600)
    try file.write(list.binary())
    try file.setPermissions(mode)
    try file.close()
  }
}
