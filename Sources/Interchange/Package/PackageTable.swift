internal import SandboxModel
internal import SystemIO

/// All entries of a package, checked, in the order in which they are unpacked.
struct PackageTable {
  /// An entry and where who reads the package finds it; nil for a directory that is only implied.
  struct Row {
    let entry: PackageEntry
    let ticket: Int?
  }

  let bundle: ByteString
  let limits: PackageLimits
  let fault: PackageFault
  private(set) var rows: [Row] = []
  /// Where a path is in `rows`.
  private(set) var places: [ByteString: Int] = [:]
  private var pathBytes = 0
  private(set) var size = PackageSize()

  /// Begins the table of the bundle `Example.app`.
  init(bundle: ByteString, limits: PackageLimits, fault: PackageFault) {
    self.bundle = bundle
    self.limits = limits
    self.fault = fault
  }

  /// The entry of a path.
  subscript(path: ByteString) -> Row? { places[path].map { rows[$0] } }

  /// Adds an entry whose name was checked, in any order.
  ///
  /// - Throws: `unsafePackage` for a path that was there before and for more than the limits.
  mutating func add(_ entry: PackageEntry, ticket: Int?) throws(ModelError) {
    guard places.updateValue(rows.count, forKey: entry.path) == nil else {
      throw fault.unsafe("it holds '\(entry.path)' twice")
    }
    rows.append(Row(entry: entry, ticket: ticket))
    pathBytes += entry.path.count
    size.entries += 1
    guard size.entries <= limits.entries else {
      throw fault.tooMuch("it has more than \(limits.entries) entries")
    }
    guard pathBytes <= limits.pathBytes else {
      throw fault.tooMuch("its names have more than \(limits.pathBytes) bytes together")
    }
    if case .file(let bytes) = entry.kind {
      let sum = size.bytes.addingReportingOverflow(bytes)
      guard !sum.overflow, sum.partialValue <= UInt64(Int64.max) else {
        throw fault.tooMuch("its files claim more bytes than any volume has")
      }
      size.bytes = sum.partialValue
    }
    size.allocate(entry.kind)
  }

  /// Checks what all entries are together, and puts each directory before what is in it.
  ///
  /// - Throws: `unsafePackage` for what cannot be unpacked safely, `package` for a bundle that is no
  ///   directory.
  mutating func finish() throws(ModelError) {
    if let free = limits.availableBytes, size.bytes > free {
      throw fault.tooMuch(
        "its files have \(size.bytes) bytes, and the volume has \(free) bytes free")
    }
    try putDirectoriesFirst()
    guard let root = self[bundle], root.entry.kind == .folder else {
      throw fault.damaged("its '\(bundle)' is no directory")
    }
    try checkLinks()
    try checkFolding()
  }

  private mutating func putDirectoriesFirst() throws(ModelError) {
    let (given, known) = (rows, places)
    rows = []
    places = [:]
    rows.reserveCapacity(given.count)
    for row in given where places[row.entry.path] == nil {
      for directory in try missing(above: row.entry, given, known) { take(directory) }
      take(row)
    }
  }

  /// The directories above an entry that are not in the table yet, the uppermost first.
  private mutating func missing(
    above entry: PackageEntry, _ given: [Row], _ known: [ByteString: Int]
  ) throws(ModelError) -> [Row] {
    var found: [Row] = []
    var path = PackageName.parent(of: entry.path)
    while !path.isEmpty {
      if let place = places[path] {
        try check(rows[place].entry, holds: entry)
        break
      }
      if let place = known[path] {
        try check(given[place].entry, holds: entry)
        found.append(given[place])
      } else {
        found.append(implied(path, by: entry))
        size.entries += 1
        size.allocate(.folder)
      }
      path = PackageName.parent(of: path)
    }
    guard size.entries <= limits.entries else {
      throw fault.tooMuch("it has more than \(limits.entries) entries")
    }
    return found.reversed()
  }

  private func implied(_ path: ByteString, by entry: PackageEntry) -> Row {
    Row(
      entry: PackageEntry(
        path: path, kind: .folder, permissions: 0o755, modified: entry.modified),
      ticket: nil)
  }

  private mutating func take(_ row: Row) {
    places[row.entry.path] = rows.count
    rows.append(row)
  }

  private func check(_ above: PackageEntry, holds entry: PackageEntry) throws(ModelError) {
    switch above.kind {
    case .folder: return
    case .file:
      throw fault.unsafe("it holds '\(entry.path)' below '\(above.path)', which is a file")
    case .link:
      throw fault.unsafe("it holds '\(entry.path)' below '\(above.path)', which is a link")
    }
  }

  /// Apps of macOS go to volumes that hold two names to be one when they differ only by case.
  private func checkFolding() throws(ModelError) {
    let info: ByteString = "Info.plist"
    guard self[bundle.appending(info)] == nil,
      self[bundle.appending("Contents").appending(info)] != nil
    else { return }
    var seen: [String: ByteString] = [:]
    for row in rows {
      guard let folded = PackageName.folded(row.entry.path) else { continue }
      if let other = seen.updateValue(row.entry.path, forKey: folded) {
        throw fault.unsafe(
          "it holds '\(other)' and '\(row.entry.path)', which are one name on a Mac's volume")
      }
    }
  }
}
