internal import SandboxModel
internal import SystemIO

/// All entries of a package, checked, in extraction order.
struct PackageTable {
  /// An entry with the reader's ticket for it, or nil for a directory that is only implied.
  struct Row {
    let entry: PackageEntry
    let ticket: Int?
  }

  let bundle: ByteString
  let limits: PackageLimits
  let fault: PackageFault
  private(set) var rows: [Row] = []
  /// The indexes of the paths in `rows`.
  private(set) var indexes: [ByteString: Int] = [:]
  private var pathBytes = 0
  private(set) var size = AppPackage.Size()

  /// Creates the table of the bundle `Example.app`.
  init(bundle: ByteString, limits: PackageLimits, fault: PackageFault) {
    self.bundle = bundle
    self.limits = limits
    self.fault = fault
  }

  /// The row with a path, or nil if there is none.
  subscript(path: ByteString) -> Row? { indexes[path].map { rows[$0] } }

  /// Adds an entry with a checked name, in any order.
  ///
  /// - Throws: `unsafePackage` for a duplicate path or an exceeded limit.
  mutating func add(_ entry: PackageEntry, ticket: Int?) throws(ModelError) {
    guard indexes.updateValue(rows.count, forKey: entry.path) == nil else {
      throw fault.unsafe("it contains '\(entry.path)' twice")
    }
    rows.append(Row(entry: entry, ticket: ticket))
    pathBytes += entry.path.count
    size.entries += 1
    guard size.entries <= limits.entries else {
      throw fault.limitExceeded("it has more than \(limits.entries) entries")
    }
    guard pathBytes <= limits.pathBytes else {
      throw fault.limitExceeded("its names have more than \(limits.pathBytes) bytes in total")
    }
    if case .file(let bytes) = entry.kind {
      let sum = size.bytes.addingReportingOverflow(bytes)
      guard !sum.overflow, sum.partialValue <= UInt64(Int64.max) else {
        throw fault.limitExceeded("its files claim to be larger than any volume")
      }
      size.bytes = sum.partialValue
    }
    size.allocate(entry.kind)
  }

  /// Checks the entries in combination, and moves each directory before its content.
  ///
  /// - Throws: `unsafePackage` if the package is not safe to extract, `package` if the bundle is
  ///   not a directory.
  mutating func finish() throws(ModelError) {
    if let free = limits.availableBytes, size.bytes > free {
      throw fault.limitExceeded(
        "its files have \(size.bytes) bytes, and the volume has \(free) bytes free")
    }
    try moveDirectoriesFirst()
    guard let root = self[bundle], root.entry.kind == .directory else {
      throw fault.damaged("its '\(bundle)' is not a directory")
    }
    try checkLinks()
    try checkFolding()
  }

  private mutating func moveDirectoriesFirst() throws(ModelError) {
    let (given, known) = (rows, indexes)
    rows = []
    indexes = [:]
    rows.reserveCapacity(given.count)
    for row in given where indexes[row.entry.path] == nil {
      for directory in try missing(above: row.entry, given, known) { append(directory) }
      append(row)
    }
  }

  /// Returns the directories above an entry that are not in the table yet, in descending order.
  private mutating func missing(
    above entry: PackageEntry, _ given: [Row], _ known: [ByteString: Int]
  ) throws(ModelError) -> [Row] {
    var found: [Row] = []
    var path = entry.path.parent
    while !path.isEmpty {
      if let index = indexes[path] {
        try check(rows[index].entry, holds: entry)
        break
      }
      if let index = known[path] {
        try check(given[index].entry, holds: entry)
        found.append(given[index])
      } else {
        found.append(implied(path, by: entry))
        size.entries += 1
        size.allocate(.directory)
      }
      path = path.parent
    }
    guard size.entries <= limits.entries else {
      throw fault.limitExceeded("it has more than \(limits.entries) entries")
    }
    return found.reversed()
  }

  private func implied(_ path: ByteString, by entry: PackageEntry) -> Row {
    Row(
      entry: PackageEntry(
        path: path, kind: .directory, permissions: 0o755, modified: entry.modified),
      ticket: nil)
  }

  private mutating func append(_ row: Row) {
    indexes[row.entry.path] = rows.count
    rows.append(row)
  }

  private func check(_ above: PackageEntry, holds entry: PackageEntry) throws(ModelError) {
    switch above.kind {
    case .directory: return
    case .file:
      throw fault.unsafe("it contains '\(entry.path)' below '\(above.path)', which is a file")
    case .link:
      throw fault.unsafe("it contains '\(entry.path)' below '\(above.path)', which is a link")
    }
  }

  /// Refuses macOS apps with names that differ only by case, which the volumes of a Mac treat as
  /// equal.
  private func checkFolding() throws(ModelError) {
    let info: ByteString = "Info.plist"
    guard self[bundle.appending(info)] == nil,
      self[bundle.appending("Contents").appending(info)] != nil
    else { return }
    var seen: [String: ByteString] = [:]
    for row in rows {
      guard let folded = PackageEntry.Name.folded(row.entry.path) else { continue }
      if let other = seen.updateValue(row.entry.path, forKey: folded) {
        throw fault.unsafe(
          "it contains '\(other)' and '\(row.entry.path)', which are the same name on a Mac volume")
      }
    }
  }
}

// MARK: - Links

extension PackageTable {
  /// The maximum number of links in a chain, as on Linux.
  private static let maximumHops = 40

  /// Resolves each link in the package as the kernel would, and refuses a link that leaves the
  /// bundle at any step. Dangling links within the bundle are permitted.
  func checkLinks() throws(ModelError) {
    for row in rows {
      guard case .link(let target) = row.entry.kind else { continue }
      if let reason = escapeReason(of: row.entry.path, target) {
        throw fault.unsafe("its link '\(row.entry.path)' leads to '\(target)', \(reason)")
      }
    }
  }

  /// Returns the reason why a link is refused, or nil if it stays in the bundle.
  private func escapeReason(of link: ByteString, _ target: ByteString) -> String? {
    var here = Array(link.components.dropLast())
    var ahead: [ByteString] = []
    if let reason = push(target, &ahead) { return reason }
    var hops = 1
    while let name = ahead.popLast() {
      if name == "." { continue }
      if name == ".." {
        here.removeLast()
        if here.isEmpty { return "which is outside the bundle" }
        continue
      }
      let path = ByteString(joining: here + [name])
      guard case .link(let next)? = self[path]?.entry.kind else {
        here.append(name)
        continue
      }
      hops += 1
      if hops > Self.maximumHops { return "which leads through more than 40 links" }
      if let reason = push(next, &ahead) { return reason }
    }
    return nil
  }

  /// Adds the components of a target before the remaining ones; the next component is last.
  private func push(_ target: ByteString, _ ahead: inout [ByteString]) -> String? {
    if target.isEmpty { return "which is empty" }
    if target.hasNUL { return "which contains a NUL byte" }
    if target.count > 4095 { return "which has more than 4,095 bytes" }
    if target.isAbsolute { return "which is outside the bundle" }
    ahead += target.components.reversed()
    return nil
  }
}
