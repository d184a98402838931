internal import PolicyEngine
package import SystemIO

/// Finds the identifiers of an app in the forms of the two sides of a migration.
package struct AppPairing {
  /// One side: the form of its apps, and the home directory.
  package struct Side: Sendable, Hashable {
    /// The form.
    package let packaging: Packaging
    /// The home directory, an absolute path without links.
    package let home: ByteString

    /// Creates a side.
    package init(_ packaging: Packaging, home: ByteString) {
      (self.packaging, self.home) = (packaging, home)
    }
  }

  private let source: Side
  private let target: Side
  private let library: MigrationLibrary
  /// The identifiers of the apps that are installed in the target.
  private let installed: Set<ByteString>
  /// The apps whose bundles have an unusable list of places.
  private let refused: Set<ByteString>

  /// Creates a pairing.
  ///
  /// - Parameter installed: The identifiers of the apps that are installed in the target; only
  ///   these get data from outside sandboxes with `all()`.
  /// - Parameter refused: The identifiers of apps whose `container-migration.plist` is unusable.
  package init(
    from source: Side, to target: Side, in library: MigrationLibrary, installed: Set<ByteString>,
    refused: Set<ByteString> = []
  ) {
    self.source = source
    self.target = target
    self.library = library
    self.installed = installed
    self.refused = refused
  }

  /// Returns the route of an app.
  ///
  /// - Parameter name: The app's identifier in any form, the name or the title of its table, or the
  ///   last component of its identifier.
  /// - Throws: `notFound` if there is no such app, or no table states its identifier in the target;
  ///   `unclear` if several apps match.
  package func route(for name: ByteString) throws(OperationError) -> MigrationRoute {
    if let table = table(named: name) {
      return route(try identifier(in: table, on: source), try identifier(in: table, on: target))
    }
    let app = try identifierWithoutTable(name)
    if let table = library.table(for: app, as: source.packaging) {
      return route(app, try identifier(in: table, on: target))
    }
    let isSame = source.packaging == target.packaging
    if source.packaging == .macOS || target.packaging == .macOS {
      throw OperationError(
        .notFound, code: .noApp, "migrate", subject: app,
        reason: refused.contains(app)
          ? "its container-migration.plist is not usable"
          : "its bundle has no container-migration.plist",
        hint: "copy its files into the container by hand")
    }
    guard isSame || !source.packaging.isSandbox || !target.packaging.isSandbox else {
      throw Self.noTable(app, target)
    }
    return route(app, app)
  }

  /// Returns the routes of all apps with data in the source, and the data without one.
  package func all() -> PairedApps {
    var found =
      source.packaging.isSandbox
      ? allOfSandboxes() : target.packaging.isSandbox ? allIntoSandboxes() : allOutsideSandboxes()
    // The apps in them seem to be missing.
    found.unreadable = searchedDirectories.compactMap { path in
      MigrationSurvey.fault(ofDirectory: path, in: source.home).map {
        PathRemark(path: path.isEmpty ? "." : path, remark: $0)
      }
    }
    return found
  }

  /// The directories of the source in which apps are searched, relative to its home directory.
  private var searchedDirectories: [ByteString] {
    if source.packaging == .macOS { return ["Library/Containers"] }
    if source.packaging.isSandbox { return [source.packaging.container(of: "x").parent] }
    let bases = (library.general?.places ?? []).filter { $0.skip(of: "x") == nil }
    return [""] + bases.compactMap { $0.path(in: source.packaging)?.bytes }
  }

  private func allOfSandboxes() -> PairedApps {
    var found = PairedApps()
    for app in containers(of: source) {
      do throws(OperationError) {
        found.routes.append(try route(for: app))
      } catch {
        found.without.append(
          PathRemark(path: app, remark: error.parts.reason ?? error.description))
      }
    }
    return found
  }

  /// Apps are known by their tables, or by the names of those that are installed in the target.
  private func allIntoSandboxes() -> PairedApps {
    var found = PairedApps()
    let (known, others) = addTables(to: &found)
    // For apps of macOS only their own lists have places.
    for app in installed.subtracting(known).sorted() where target.packaging != .macOS {
      let route = route(app, app)
      if route.sources.contains(where: { exists($0, in: source) }) { found.routes.append(route) }
    }
    return complete(found, besides: others)
  }

  /// Outside sandboxes every name in the base directories is an app with the same places in the
  /// target.
  private func allOutsideSandboxes() -> PairedApps {
    var found = PairedApps()
    _ = addTables(to: &found)
    let paths = unnamedPaths(besides: found.routes)
    let dotted = Set(paths.filter { $0.parent.isEmpty })
    for name in Set(paths.compactMap(\.lastComponent)).sorted() {
      found.routes.append(dotted.contains(name) ? route(ofDotted: name) : route(name, name))
    }
    found = complete(found)
    found.unnamed += ownEntries(besides: found.routes).sorted().map { path in
      group(path, reason: "no app's data: copy it by itself")
    }
    return found
  }

  /// Adds the routes of the tables with data in the source. Returns the identifiers in the target
  /// of all apps with tables, and the routes of those that are not installed there.
  private func addTables(
    to found: inout PairedApps
  ) -> (known: Set<ByteString>, others: [MigrationRoute]) {
    var (known, others): (Set<ByteString>, [MigrationRoute]) = ([], [])
    for table in library.tables where !table.isGeneral {
      guard let from = try? identifier(in: table, on: source),
        let to = try? identifier(in: table, on: target), known.insert(to).inserted
      else { continue }
      let route = route(from, to)
      guard route.sources.contains(where: { exists($0, in: source) }) else { continue }
      if !target.packaging.isSandbox || installed.contains(to) {
        found.routes.append(route)
      } else {
        let bytes = ByteCount.text(size(of: route.sources).bytes)
        found.without.append(
          PathRemark(path: to, remark: "it is not installed in the target (\(bytes) in the source)")
        )
        others.append(route)
      }
    }
    return (known, others)
  }

  /// Sorts a result, and adds the data that it does not cover with its size.
  ///
  /// - Parameter others: The routes that are reported as impossible.
  private func complete(
    _ found: PairedApps, besides others: [MigrationRoute] = []
  ) -> PairedApps {
    var found = found
    found.unnamed = unnamedPaths(besides: found.routes + others).sorted().map { path in
      group(path, reason: "no table and no installed app names it")
    }
    found.routes.sort { $0.to.app < $1.to.app }
    found.without.sort { $0.path < $1.path }
    return found
  }

  /// Returns data of the source with its size.
  private func group(_ path: ByteString, reason: String) -> MigrationPlan.Group {
    var group = MigrationPlan.Group(path: path, reason: reason)
    (group.files, group.bytes) = size(of: [path])
    return group
  }

  /// Returns the number and the bytes of the files at paths of the source.
  private func size(of paths: [ByteString]) -> (files: Int, bytes: UInt64) {
    var (files, bytes) = (0, UInt64(0))
    for entry in (try? MigrationSurvey(of: source.home, paths: paths))?.entries ?? []
    where entry.kind != .directory {
      files += 1
      bytes &+= entry.size
    }
    return (files, bytes)
  }

  /// Returns the entries of the base directories, and the dotted entries of the home, that belong
  /// to none of the apps. Entries of the desktop and the shell, which the general table skips or
  /// excludes, are omitted, as are caches.
  private func unnamedPaths(besides routes: [MigrationRoute]) -> [ByteString] {
    let known = SourcePaths(routes)
    var found: [ByteString] = []
    for place in library.general?.places ?? [] {
      guard let base = place.path(in: source.packaging)?.bytes,
        let directory = try? Directory.open(resolved: source.home.appending(base))
      else { continue }
      for name in (try? directory.names()) ?? [] {
        // Some rules are for a directory, some for its content.
        if place.skip(of: name) != nil || place.skip(of: name.appending("x")) != nil { continue }
        let path = base.appending(name)
        if !known.touch(path) { found.append(path) }
      }
    }
    return (found + homeEntries.filter { Self.isDotted($0) && !known.touch($0) }).filter {
      !isLog($0)
    }
  }

  /// Returns the entries of the home that belong to the user and not to an app: `Documents`.
  private func ownEntries(besides routes: [MigrationRoute]) -> [ByteString] {
    let known = SourcePaths(routes)
    return homeEntries.filter { !Self.isDotted($0) && !known.touch($0) }
  }

  /// The names in the source's home directory, except those of the shell, the session and
  /// sandboxes.
  private var homeEntries: [ByteString] {
    guard let home = try? Directory.open(resolved: source.home) else { return [] }
    return ((try? home.names()) ?? []).filter { library.general?.isNoApp($0) != true }
  }

  private static func isDotted(_ name: ByteString) -> Bool {
    name.bytes.first == UInt8(ascii: ".")
  }

  /// Returns the route of a dotted entry of the home directory, which has the same path in each
  /// home, and of the base directories' entries of the same name.
  private func route(ofDotted name: ByteString) -> MigrationRoute {
    let location = PolicyLocation(file: "home directory", line: 1, column: 1)
    let place = MigrationTable.Place(
      id: "entry", paths: [.host: MigrationTable.Path(name)], source: "the same path",
      location: location)
    return MigrationRoute(
      from: MigrationEnd(source.packaging, app: name, home: source.home),
      to: MigrationEnd(target.packaging, app: name, home: target.home),
      table: MigrationTable(name: name.description, places: [place], location: location),
      general: library.general, names: MigrationNames(exactly: name))
  }

  private func route(_ from: ByteString, _ to: ByteString) -> MigrationRoute {
    MigrationRoute(
      from: MigrationEnd(source.packaging, app: from, home: source.home),
      to: MigrationEnd(target.packaging, app: to, home: target.home), in: library)
  }

  // MARK: - Names

  private func table(named name: ByteString) -> MigrationTable? {
    let lower = name.lowercasedASCII
    return library.tables.last { table in
      !table.isGeneral
        && (ByteString(table.name).lowercasedASCII == lower
          || table.title.map { ByteString($0).lowercasedASCII == lower } ?? false
          || table.apps.values.contains { $0.contains(name) })
    }
  }

  /// Returns the identifier of a table's app on a side: that of an installed app, or of one with
  /// data there, or the first one.
  private func identifier(
    in table: MigrationTable, on side: Side
  ) throws(OperationError) -> ByteString {
    guard side.packaging.isSandbox else {
      let names = table.apps[side.packaging] ?? table.apps[.deb] ?? table.apps[.host] ?? []
      return names.first ?? ByteString(table.name)
    }
    let names = table.apps[side.packaging] ?? []
    let present = names.first { exists(side.packaging.container(of: $0), in: side) }
    let known = side == target ? names.first(where: installed.contains) ?? present : present
    guard let found = known ?? names.first else { throw Self.noTable(ByteString(table.name), side) }
    return found
  }

  /// Returns the identifier of an app for which there is no table: of a sandbox on one of the
  /// sides, or the name of its directories.
  private func identifierWithoutTable(_ name: ByteString) throws(OperationError) -> ByteString {
    let isOutside = !source.packaging.isSandbox && !target.packaging.isSandbox
    let sandbox = source.packaging.isSandbox || isOutside ? source : target
    let known = Set(
      containers(of: sandbox) + (sandbox == target ? installed.sorted() : [])
        + (isOutside ? namesOutsideSandboxes() : []))
    if known.contains(name) { return name }
    let lower = name.lowercasedASCII
    let found = known.filter { app in
      let last = app.bytes.split(separator: UInt8(ascii: ".")).last.map { ByteString($0) }
      return app.lowercasedASCII == lower || last?.lowercasedASCII == lower
    }.sorted()
    guard let first = found.first else {
      throw OperationError(
        .notFound, code: .noApp, "find the app", subject: name,
        reason: "no table names it, and '\(sandbox.home)' has no such "
          + "\(sandbox.packaging.rawValue) app",
        hint: "give its identifier; 'sandboxctl apps' lists the apps of a device")
    }
    if found.count == 1 { return first }
    throw OperationError(
      .unclear, code: .ambiguousApp, "find the app", subject: name,
      reason: "several apps match: \(found.map(\.description).joined(separator: ", "))",
      hint: "give the full identifier")
  }

  private static func noTable(_ app: ByteString, _ side: Side) -> OperationError {
    OperationError(
      .notFound, code: .noApp, "migrate", subject: app,
      reason: "no migration table states the app as \(side.packaging.rawValue)",
      hint: "'sandboxctl restore SNAP --to DIR' writes the data to a directory; docs/policies.md "
        + "describes tables")
  }

  // MARK: - Files

  /// Returns the names in the base directories of the source.
  private func namesOutsideSandboxes() -> [ByteString] {
    unnamedPaths(besides: []).filter { !$0.parent.isEmpty }.compactMap(\.lastComponent)
  }

  /// Returns the names of the directories of a sandbox's apps; none outside sandboxes. For macOS
  /// these are the apps with tables: their data cannot be moved in any other way.
  private func containers(of side: Side) -> [ByteString] {
    if side.packaging == .macOS {
      return library.tables.flatMap { $0.apps[.macOS] ?? [] }.filter {
        exists(side.packaging.container(of: $0), in: side)
      }
    }
    let above = side.packaging.container(of: "x").parent
    guard side.packaging.isSandbox,
      let directory = try? Directory.open(resolved: side.home.appending(above)),
      let names = try? directory.names()
    else { return [] }
    return names.filter { name in
      name.bytes.first != UInt8(ascii: ".")
        && (try? directory.statusIfPresent(name))?.kind == .directory
    }
  }

  private func exists(_ path: ByteString, in side: Side) -> Bool { kind(path, in: side) != nil }

  private func kind(_ path: ByteString, in side: Side) -> FileKind? {
    let full = side.home.appending(path)
    guard let name = full.lastComponent,
      let directory = try? Directory.open(resolved: full.parent)
    else { return nil }
    return (try? directory.statusIfPresent(name))?.kind
  }

  /// Whether an entry is the log, the journal or the index of a file beside it, with which it is
  /// listed.
  private func isLog(_ path: ByteString) -> Bool {
    guard let owner = MigratedDatabases.companion(path) else { return false }
    return kind(owner.database, in: source) == .file
  }
}

/// The paths of the source that routes cover. There can be a route for each name in a home
/// directory, so that no path is compared with all of them.
private struct SourcePaths {
  private var paths: Set<ByteString> = []
  /// The directories above `paths`.
  private var above: Set<ByteString> = []

  init(_ routes: [MigrationRoute]) {
    for path in routes.flatMap(\.sources) where paths.insert(path).inserted {
      var parent = path.parent
      while !parent.isEmpty, above.insert(parent).inserted { parent = parent.parent }
    }
  }

  /// Whether a path belongs to a route, or is below or above such a path.
  func touch(_ path: ByteString) -> Bool {
    if above.contains(path) { return true }
    var at = path
    while !at.isEmpty {
      if paths.contains(at) { return true }
      at = at.parent
    }
    return false
  }
}
