public import PolicyEngine
public import SandboxModel
public import SystemIO

/// A look at all entries of a device's containers, each with what a policy says of it.
///
/// What the policy leaves out is looked at, too, so that its bytes can be told; nothing is opened but
/// directories, and files that a marker looks into. The scan changes nothing on the device.
public struct DeviceScan: Sendable {
  public let device: Device
  public let policy: CompiledPolicy
  /// When it began, by this machine's clock.
  public let began: Timestamp
  /// In the order of the containers' logical paths.
  public internal(set) var containers: [ContainerScan]
  /// Whether it was asked to stop before everything was looked at: then it is good for nothing.
  public let isInterrupted: Bool
  /// Which marks the entries bear, where the scan was told what earlier ones found.
  public let marks: ExclusionMarkCache?
  let options: ScanOptions

  /// Scans a device's containers, or those that `isWanted` says.
  ///
  /// - Parameter marks: what earlier scans found; else each entry is looked at for marks.
  public static func run(
    _ device: Device, policy: CompiledPolicy, options: ScanOptions = ScanOptions(),
    knowing marks: ExclusionMarkCache? = nil, where isWanted: (Container) -> Bool = { _ in true }
  ) -> DeviceScan {
    // A fingerprint does not tell volumes apart.
    let marks = options.crossesMounts ? nil : marks
    let (wanted, began) = (device.containers.filter(isWanted), Host.now())
    if options.workers > 1, !wanted.isEmpty,
      let scan = parallel(device, policy, options, marks, wanted, began)
    {
      return scan
    }
    guard let first = wanted.first else {
      return DeviceScan(
        device: device, policy: policy, began: began, containers: [], isInterrupted: false,
        marks: marks, options: options)
    }
    var scanner = ContainerScanner(policy, at: began, first, options)
    scanner.memory = marks
    var containers: [ContainerScan] = []
    for container in wanted where !scanner.isDone { containers.append(scanner.run(container)) }
    return DeviceScan(
      device: device, policy: policy, began: began, containers: containers,
      isInterrupted: scanner.isDone, marks: scanner.memory, options: options)
  }

  /// The same by several threads; nothing where they cannot be had.
  private static func parallel(
    _ device: Device, _ policy: CompiledPolicy, _ options: ScanOptions,
    _ marks: ExclusionMarkCache?,
    _ wanted: [Container], _ began: Timestamp
  ) -> DeviceScan? {
    let scan = ParallelScan(wanted, policy, options, at: began)
    guard let found = try? scan.run(knowing: marks) else { return nil }
    return DeviceScan(
      device: device, policy: policy, began: began, containers: found.containers,
      isInterrupted: found.isInterrupted, marks: found.marks, options: options)
  }

  /// Scans those of the device's containers again that have these logical paths, all of each. Holds none
  /// of the entries that this scan found.
  var rescan: @Sendable (Set<ByteString>) -> DeviceScan {
    let (device, policy, marks) = (device, policy, marks)
    let options = options.ofAll
    return { paths in
      DeviceScan.run(device, policy: policy, options: options, knowing: marks) {
        paths.contains($0.logicalPrefix)
      }
    }
  }
}

/// What a scan is told.
public struct ScanOptions: Sendable {
  /// Where a backup of what is found goes: decides what is kept.
  public var destination: Destination
  /// Directories that are left out whatever the policy says: the repository in use.
  public var excluded: Set<FileIdentity>
  /// Whether file systems that are mounted below a container's root are entered.
  public var crossesMounts = false
  /// A path in the container: only the directories on the way to it and itself are read, as for a
  /// question about one entry. Nil: all are.
  public var only: ByteString?
  /// Whether all that lies below that path is read, too.
  var includesBelow = false
  /// The view whose verdict decides what is kept.
  public var view: VerdictView
  /// Whether the scan is for a purge: it notes when files were last read, and looks only for marks
  /// that have a say in what may go. Most policies have none, and looking for marks is a third of a scan.
  var isForPurge = false
  /// How many threads look, at least 1.
  public var workers = ScanOptions.usualWorkers
  @TaskLocal static var usualWorkers = Host.processors
  /// About how many entries one job of a scan by several threads looks at.
  var share = ScanOptions.usualShare
  /// 2,048 entries are 5 ms of work, against 0.1 ms for making a job. Tests take fewer, so that small
  /// trees are spread over jobs as large ones are.
  @TaskLocal static var usualShare = 2048
  /// Asked before each directory, by any of the threads: whether the scan is to end early.
  public var isStopping: @Sendable () -> Bool

  /// Makes options.
  public init(
    destination: Destination = Destination(), excluded: Set<FileIdentity> = [],
    view: VerdictView = .keep, isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    self.destination = destination
    self.excluded = excluded
    self.view = view
    self.isStopping = isStopping
  }

  /// The same for whole containers.
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

  /// The options of a scan for a purge.
  public static func forPurge(
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) -> ScanOptions {
    var options = ScanOptions(isStopping: isStopping)
    options.isForPurge = true
    return options
  }
}
