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

  /// Creates a pairing.
  ///
  /// - Parameter installed: The identifiers of the apps that are installed in the target; only those
  ///   get data from outside sandboxes with `all()`.
  package init(
    from source: Side, to target: Side, in library: MigrationLibrary, installed: Set<ByteString>
  ) {
    self.source = source
    self.target = target
    self.library = library
    self.installed = installed
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
    guard isSame || !source.packaging.isSandbox || !target.packaging.isSandbox else {
      throw Self.noTable(app, target)
    }
    return route(app, app)
  }

  /// Returns the routes of all apps with data in the source, in the order of their identifiers, and
  /// the apps without one, each with the reason.
  package func all() -> (routes: [MigrationRoute], without: [PathRemark]) {
    source.packaging.isSandbox ? allOfSandboxes() : allOutsideSandboxes()
  }

  private func allOfSandboxes() -> (routes: [MigrationRoute], without: [PathRemark]) {
    var (routes, without): ([MigrationRoute], [PathRemark]) = ([], [])
    for app in containers(of: source) {
      do throws(OperationError) {
        routes.append(try route(for: app))
      } catch {
        without.append(PathRemark(path: app, remark: error.parts.reason ?? error.description))
      }
    }
    return (routes, without)
  }

  /// Apps are known by their tables, or by the names of those that are installed in the target.
  private func allOutsideSandboxes() -> (routes: [MigrationRoute], without: [PathRemark]) {
    var (routes, without): ([MigrationRoute], [PathRemark]) = ([], [])
    var known: Set<ByteString> = []
    for table in library.tables where !table.isGeneral {
      guard let from = try? identifier(in: table, on: source),
        let to = try? identifier(in: table, on: target), known.insert(to).inserted
      else { continue }
      let route = route(from, to)
      guard route.sources.contains(where: { exists($0, in: source) }) else { continue }
      if !target.packaging.isSandbox || installed.contains(to) {
        routes.append(route)
      } else {
        without.append(PathRemark(path: to, remark: "it is not installed in the target"))
      }
    }
    for app in installed.subtracting(known).sorted() where target.packaging.isSandbox {
      let route = route(app, app)
      if route.sources.contains(where: { exists($0, in: source) }) { routes.append(route) }
    }
    without += unknownDirectories(besides: routes)
    return (routes.sorted { $0.to.app < $1.to.app }, without.sorted { $0.path < $1.path })
  }

  /// Returns the entries of the base directories that belong to none of the apps, except those of the
  /// desktop and caches, which the general table skips.
  private func unknownDirectories(besides routes: [MigrationRoute]) -> [PathRemark] {
    var found: [PathRemark] = []
    for place in library.general?.places ?? [] {
      guard let base = place.path(in: source.packaging)?.bytes,
        let directory = try? Directory.open(resolved: source.home.appending(base)),
        let names = try? directory.names()
      else { continue }
      for name in names {
        // Some rules are for a directory, some for its content.
        if place.skip(of: name) != nil || place.skip(of: name.appending("x")) != nil { continue }
        let path = base.appending(name)
        let isKnown = routes.contains { route in
          route.place(of: path) != nil || route.sources.contains { $0.isWithin(path) }
        }
        if !isKnown {
          found.append(PathRemark(path: path, remark: "no table and no installed app names it"))
        }
      }
    }
    return found
  }

  private func route(_ from: ByteString, _ to: ByteString) -> MigrationRoute {
    MigrationRoute(
      from: MigrationEnd(source.packaging, app: from, home: source.home),
      to: MigrationEnd(target.packaging, app: to, home: target.home), in: library)
  }

  // MARK: - Names

  private func table(named name: ByteString) -> MigrationTable? {
    let lower = Self.lower(name)
    return library.tables.last { table in
      !table.isGeneral
        && (Self.lower(ByteString(table.name)) == lower
          || table.title.map { Self.lower(ByteString($0)) == lower } ?? false
          || table.apps.values.contains { $0.contains(name) })
    }
  }

  /// Returns the identifier of a table's app on a side: that of an installed app, or of one with
  /// data there, or the first.
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

  /// Returns the identifier of an app for which there is no table: of a sandbox on one of the sides.
  private func identifierWithoutTable(_ name: ByteString) throws(OperationError) -> ByteString {
    let sandbox = source.packaging.isSandbox ? source : target
    let known = Set(
      containers(of: sandbox) + (sandbox == target ? installed.sorted() : []))
    if known.contains(name) { return name }
    let lower = Self.lower(name)
    let found = known.filter { app in
      let last = app.bytes.split(separator: UInt8(ascii: ".")).last.map { ByteString($0) }
      return Self.lower(app) == lower || last.map(Self.lower) == lower
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

  private static func lower(_ name: ByteString) -> ByteString {
    ByteString(name.bytes.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 })
  }

  // MARK: - Files

  /// Returns the names of the directories of a sandbox's apps; none outside sandboxes.
  private func containers(of side: Side) -> [ByteString] {
    let above = side.packaging.container(of: "x").parent
    guard side.packaging.isSandbox, side.packaging != .macOS,
      let directory = try? Directory.open(resolved: side.home.appending(above)),
      let names = try? directory.names()
    else { return [] }
    return names.filter { name in
      name.bytes.first != UInt8(ascii: ".")
        && ((try? directory.statusIfPresent(name)) ?? nil)?.kind == .directory
    }
  }

  private func exists(_ path: ByteString, in side: Side) -> Bool {
    let full = side.home.appending(path)
    guard let name = full.lastComponent,
      let directory = try? Directory.open(resolved: full.parent)
    else { return false }
    return ((try? directory.statusIfPresent(name)) ?? nil) != nil
  }
}
