public import ArchiveStore
internal import Codecs
public import PolicyEngine
public import SandboxModel
public import SystemIO

/// The entries of a device's containers, each with the policy's verdicts.
///
/// Excluded entries are also scanned, to report their size. Only directories are opened, and files
/// whose content a marker examines. The scan changes nothing on the device.
public struct DeviceScan: Sendable {
  public let device: Device
  public let policy: CompiledPolicy
  /// When the scan began, by this machine's clock.
  public let began: Timestamp
  /// The scans of the containers, in the order of their logical paths.
  public var containers: [ContainerScan]
  /// Whether the scan was stopped before its end. Its results are then unusable.
  public let isInterrupted: Bool
  /// The marks of the entries, if the scan received those that earlier scans found.
  public let marks: ExclusionMarkCache?
  public let options: ScanOptions

  /// Creates a scan with the given results.
  public init(
    device: Device, policy: CompiledPolicy, began: Timestamp, containers: [ContainerScan],
    isInterrupted: Bool, marks: ExclusionMarkCache?, options: ScanOptions
  ) {
    self.device = device
    self.policy = policy
    self.began = began
    self.containers = containers
    self.isInterrupted = isInterrupted
    self.marks = marks
    self.options = options
  }

  /// Scans a device's containers, or those for which `isWanted` returns true.
  ///
  /// - Parameter marks: the marks that earlier scans found; nil to look for marks on each entry.
  public static func run(
    _ device: Device, policy: CompiledPolicy, options: ScanOptions,
    knowing marks: ExclusionMarkCache? = nil, where isWanted: (Container) -> Bool = { _ in true }
  ) -> DeviceScan {
    // A fingerprint does not distinguish volumes.
    let marks = options.crossesMounts ? nil : marks
    let (wanted, began) = (device.containers.filter(isWanted), Host.now())
    if options.workers > 1, !wanted.isEmpty,
      let scan = parallel(
        device, policy: policy, options: options, knowing: marks, containers: wanted, began: began)
    {
      return scan
    }
    guard let first = wanted.first else {
      return DeviceScan(
        device: device, policy: policy, began: began, containers: [], isInterrupted: false,
        marks: marks, options: options)
    }
    var scanner = ContainerScanner(policy, at: began, first: first, options: options)
    scanner.markCache = marks
    var containers: [ContainerScan] = []
    for container in wanted where !scanner.isDone { containers.append(scanner.run(container)) }
    return DeviceScan(
      device: device, policy: policy, began: began, containers: containers,
      isInterrupted: scanner.isDone, marks: scanner.markCache, options: options)
  }

  /// Scans the containers below a logical path or, if the path is in a container, the entries below
  /// it and the directories above it. Scans all containers if there is no path.
  public static func run(
    _ device: Device, policy: CompiledPolicy, within scope: LogicalPath?, options: ScanOptions
  ) -> DeviceScan {
    guard let scope else { return run(device, policy: policy, options: options) }
    var options = options
    if let container = device.containers.first(where: { scope.bytes.isWithin($0.logicalPrefix) }),
      scope.bytes != container.logicalPrefix
    {
      options.only = scope.bytes.relative(to: container.logicalPrefix)
      options.includesBelow = true
    }
    return run(device, policy: policy, options: options) { container in
      scope.bytes.isWithin(container.logicalPrefix)
        || container.logicalPrefix.isWithin(scope.bytes)
    }
  }

  /// Returns the query for the entry at a path in a container with its marks, or for a regular file
  /// if the entry does not exist, and the class of data protection that the metadata of a file
  /// states. For a log or a journal to which the verdicts of its database apply, it is the query
  /// for the database, which is named; `purge` is then the decision of its own rules about purges.
  /// Reads only the directories above it.
  public static func query(
    _ inner: ByteString, in container: Container, of device: Device, policy: CompiledPolicy
  ) -> (
    query: EntryQuery, exists: Bool, stated: ProtectionClass?, database: ByteString?,
    purge: (keep: PurgeDisposition, platform: PurgeDisposition)?
  ) {
    var options = ScanOptions(destination: .unrestricted)
    options.only = inner
    let scan = run(device, policy: policy, options: options) { $0 == container }
    if let found = scan.containers.first, let index = found.index(of: inner) {
      var reader = ProtectionReader(found)
      let isFile = found.entries[index].status.kind == .file
      let database = found.databases[index].map { found.name($0) }
      let verdicts = found.entries[index].verdicts
      return (
        found.query(index), true, isFile ? reader.stated(on: index) : nil, database,
        database.map { _ in (keep: verdicts.keep.purge, platform: verdicts.platform.purge) }
      )
    }
    return (
      container.query(inner.components.map { Array($0.bytes) }, EntryFacts(.file)), false, nil,
      nil, nil
    )
  }

  /// Scans with several threads; returns nil if they cannot be started.
  private static func parallel(
    _ device: Device, policy: CompiledPolicy, options: ScanOptions,
    knowing marks: ExclusionMarkCache?, containers wanted: [Container], began: Timestamp
  ) -> DeviceScan? {
    let scan = ParallelScan(wanted, policy: policy, options: options, at: began)
    guard let found = try? scan.run(knowing: marks) else { return nil }
    return DeviceScan(
      device: device, policy: policy, began: began, containers: found.containers,
      isInterrupted: found.isInterrupted, marks: found.marks, options: options)
  }

  /// Scans the containers with the given logical paths again, each as a whole. Retains no entries
  /// of this scan.
  public var rescan: @Sendable (Set<ByteString>) -> DeviceScan {
    let (device, policy, marks) = (device, policy, marks)
    let options = options.ofAll
    return { paths in
      DeviceScan.run(device, policy: policy, options: options, knowing: marks) {
        paths.contains($0.logicalPrefix)
      }
    }
  }
}

/// The options of a scan.
public struct ScanOptions: Sendable {
  /// The destination of the backup, on which the included entries depend.
  public var destination: Destination
  /// Directories that are excluded whatever the policy says: the repository in use.
  public var excluded: Set<FileIdentity>
  /// Whether file systems mounted below a container's root are entered.
  public var crossesMounts = false
  /// A path in the container: only this directory and those above it are read, as for a query about
  /// one entry. Nil to read all directories.
  public var only: ByteString?
  /// Whether everything below that path is also read.
  public var includesBelow = false
  /// The view whose verdict decides which entries are included.
  public var view: Verdicts.View
  /// Whether the scan is for a purge: it records access times and immutable files, and looks only
  /// for marks that affect a purge. Most policies have none, and looking for marks takes a third of
  /// a scan.
  var isForPurge = false
  /// Whether the device is locked: files that cannot be read while it is are not opened.
  public var isLocked = false
  /// The number of threads, at least 1.
  public var workers = ScanOptions.usualWorkers
  @TaskLocal static var usualWorkers = Host.processors
  /// The approximate number of entries in one job of a scan with several threads.
  public var share = ScanOptions.usualShare
  /// 2,048 entries take 5 ms, making a job takes 0.1 ms. Tests use a smaller number, so that small
  /// trees are split into jobs like large ones.
  @TaskLocal static var usualShare = 2048
  /// Whether the scan should end early. Called before each directory, by any of the threads.
  public var isStopping: @Sendable () -> Bool

  /// Creates options. The destination has no default: a backup whose scan does not know its
  /// repository would lack data, or hold data that must not be there.
  public init(
    destination: Destination, excluded: Set<FileIdentity> = [],
    view: Verdicts.View = .keep, isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    self.destination = destination
    self.excluded = excluded
    self.view = view
    self.isStopping = isStopping
  }

  /// The same options for whole containers.
  var ofAll: ScanOptions {
    var options = self
    options.only = nil
    return options
  }

  /// Whether a directory is read, by its path in the container.
  func leads(to directory: @autoclosure () -> ByteString) -> Bool {
    guard let only else { return true }
    let path = directory()
    return only.isWithin(path) || (includesBelow && path.isWithin(only))
  }

  /// Returns the options of a scan for a purge.
  public static func forPurge(
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) -> ScanOptions {
    var options = ScanOptions(destination: .unrestricted, isStopping: isStopping)
    options.isForPurge = true
    return options
  }
}

extension DeviceScan {
  /// Returns the entries that the policy excludes from backups, by rule: each topmost excluded
  /// directory, and the single files of a container together, at the container's root.
  public func exclusions() -> [Exclusion] {
    containers.flatMap { exclusions(in: $0) }
  }

  /// Returns the same for one container, of the topmost excluded entries for which `isWanted`
  /// returns true.
  public func exclusions(
    in scan: ContainerScan, where isWanted: (ScannedEntry) -> Bool = { _ in true }
  ) -> [Exclusion] {
    let sums = Self.sums(scan)
    var found: [Exclusion] = []
    var files: [String: EntryTotals] = [:]
    for index in scan.entries.indices
    where Self.isTopmost(index, scan) && isWanted(scan.entries[index]) {
      let rule = policy.rule(reportingOmissions: scan.query(index)) ?? "the program's own"
      if scan.entries[index].status.kind == .directory {
        let (path, sum) = (scan.logicalPath(index), sums[index])
        found.append(
          Exclusion(
            path: path, rule: rule, files: UInt64(sum.files), bytes: sum.bytes,
            directory: Self.directory(index, scan)))
      } else {
        files[rule, default: EntryTotals()].add(sums[index])
      }
    }
    return found
      + files.sorted { $0.key < $1.key }.map { rule, sum in
        Exclusion(
          path: scan.container.logicalPrefix, rule: rule, files: UInt64(sum.files),
          bytes: sum.bytes)
      }
  }

  /// Returns a directory that a restore recreates empty, with its metadata. Attributes that cannot
  /// be read or are too long for a snapshot are omitted.
  private static func directory(_ index: Int, _ scan: ContainerScan) -> TreeEntry? {
    let entry = scan.entries[index]
    guard entry.verdicts.keep.restore == .recreateEmpty, index > 0 else { return nil }
    var attributes: [Attribute] = []
    var flags: UInt32 = 0
    // By handles from the container on, so that no link is followed.
    let root = scan.container.absolutePath
    var cursor = try? DirectoryCursor(root: Directory.open(resolved: root))
    try? cursor?.withDirectory(at: scan.path(index).components) { directory throws(SystemError) in
      attributes = try directory.attributes.all().filter {
        $0.name != Attribute.hostLabel && $0.value.count <= Attribute.inlineLimit
      }.map { Attribute(name: $0.name, value: .inline($0.value)) }
      flags = try directory.flags() ?? 0
    }
    return TreeEntry(
      name: scan.name(index), node: .directory(TreeReference(Blake2b.hash([]))),
      status: entry.status, attributes: attributes, flags: flags)
  }

  private static func isTopmost(_ index: Int, _ scan: ContainerScan) -> Bool {
    let entry = scan.entries[index]
    guard entry.selection == .excluded else { return false }
    return index == 0 || scan.entries[Int(entry.parent)].selection != .excluded
  }

  /// Returns the excluded files and bytes at and below each entry.
  private static func sums(_ scan: ContainerScan) -> SpillableArray<EntryTotals> {
    var sums = SpillableArray(repeating: EntryTotals(), count: scan.entries.count)
    for index in scan.entries.indices.reversed() {
      let entry = scan.entries[index]
      guard entry.selection == .excluded else { continue }
      sums[index].add(entry.status)
      if index > 0 { sums[Int(entry.parent)].add(sums[index]) }
    }
    return sums
  }
}
