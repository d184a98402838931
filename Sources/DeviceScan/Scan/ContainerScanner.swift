internal import ArchiveStore
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// Walks containers, classifies each entry, and determines which entries are stored.
///
/// The classifier's state is passed down the tree with the walk, so that the cost of an entry is
/// that of its own name, without an allocation. States are kept from one container to the next,
/// unless a policy produces too many of them.
struct ContainerScanner: ~Copyable, WalkVisitor {
  struct State {
    let directory: Int
    /// The classifier's state of the directory, valid until the classifier forgets it.
    let policy: Classifier.State
    let generation: Int
  }

  var scan: ContainerScan
  var classifier: Classifier
  let options: ScanOptions
  /// The destination that decides about the current container.
  private(set) var destination: Destination
  private var marks: MarkReader
  private var limits: Limits
  /// The marks that earlier scans found, if they are known.
  var markCache: ExclusionMarkCache?
  /// The number of times that the classifier has forgotten its states.
  var generation = 0
  /// Whether the scan was asked to stop and examines nothing more.
  private(set) var isDone = false
  /// The number of entries from which the remaining directories are left to another scanner.
  var share = Int.max
  /// The directories above the starts of a job, whose copies are its first entries.
  var above = Above()
  /// Deep in a tree a job can begin with more copies than its share. It ends when it has as many
  /// entries of its own, so that the copies of all jobs are in proportion to the entries.
  var isYielding: Bool {
    let count = scan.entries.count
    return count >= share && count / 2 >= above.links.count
  }
  /// The entries of another directory are not those of the one that was classified.
  static var isStrict: Bool { true }
  /// The buffer for the names to look up.
  var name = NameBuffer()
  /// The mounts of this process, read when an entry cannot be examined.
  private lazy var mountPoints = Host.mountPoints()

  init(
    _ policy: CompiledPolicy, at start: Timestamp, first: Container, options: ScanOptions
  ) {
    classifier = Classifier(policy, scanStart: start.seconds)
    scan = ContainerScan(first)
    marks = MarkReader(policy, first.kind, isForPurge: options.isForPurge)
    limits = Limits(first)
    self.options = options
    destination = options.destination.deciding(for: first.kind)
  }

  /// Scans a container; reports errors as unreadable entries of the scan.
  mutating func run(_ container: Container) -> ContainerScan {
    _ = begin(container)
    scan.joinDatabases(options)
    scan.findBareDirectories()
    return scan
  }

  /// Scans a container from its root; returns the directories that are left to another scanner.
  mutating func begin(_ container: Container) -> [WalkStart<State>] {
    prepare(container, notesAccess: false)
    do throws(SystemError) {
      return try walk(container)
    } catch {
      scan.unreadable.append(PathRemark(path: "", remark: error.reason))
      return []
    }
  }

  /// Prepares for a container, or for a part of one.
  mutating func prepare(_ container: Container, notesAccess: Bool) {
    scan = ContainerScan(container, notesAccess: notesAccess)
    above = Above()
    limits = Limits(container)
    destination = options.destination.deciding(for: container.kind)
    marks = MarkReader(classifier.policy, container.kind, isForPurge: options.isForPurge)
  }

  /// Tells the cache of marks which container is scanned next.
  mutating func remind(_ container: Container, _ root: borrowing Directory) {
    markCache?.begin(container, by: classifier.policy, searching: marks.search, in: root)
  }

  private mutating func walk(_ container: Container) throws(SystemError) -> [WalkStart<State>] {
    let root = try Directory.open(resolved: container.absolutePath)
    let status = try root.status()
    // On a volume mounted with noatime, the access time is about the creation time of the file.
    let notesAccess = options.isForPurge && (try? root.notesAccess()) ?? true
    scan = ContainerScan(container, notesAccess: notesAccess)
    var policy = classifier.root(
      container.kind, app: container.policyApp, group: container.policyGroup)
    remind(container, root)
    let found = try marks.marks(onRoot: root, status, &markCache)
    name.set([UInt8]().span)
    policy = addSiblings(classifier.marking(policy, found), root)
    record(found, at: 0)
    scan.append(
      entry(status, parent: 0, name: 0..<0, policy, type: .directory), accessed: 0)
    if options.excluded.contains(status.identity) {
      scan.exclude(0)
      return []
    }
    // The directory of a container that is one file has many others, each a container.
    var walk = Walk(root, only: container.memberNames, readsFlags: options.isForPurge)
    let state = State(directory: 0, policy: policy, generation: generation)
    return walk.run(&self, from: WalkStart(name: "", depth: 0, state: state))
  }

  mutating func visit(
    _ batch: borrowing WalkBatch, of directory: borrowing WalkDirectory, state: State,
    descent: inout WalkDescent<State>
  ) {
    isDone = isDone || options.isStopping()
    if isDone { return }
    let bytes = batch.bytes
    if RepositoryDirectory.isOne(directory.directory, with: batch) {
      if scan.entries[state.directory].selection != .excluded {
        scan.repositories.append(scan.path(state.directory))
      }
      descent.abandonDirectory()
      return scan.exclude(state.directory)
    }
    var above = policy(of: state)
    for number in 0..<batch.entries.count {
      let entry = batch.entries[number]
      let isFile = entry.status.kind == .file
      guard isWanted(bytes.span.extracting(entry.nameRange), isFile: isFile, state: state) else {
        continue
      }
      if classifier.needsCompaction { above = forgetAll(but: above) }
      if let fault = limits.fault(of: entry, in: directory) {
        addUnreadable(entry, bytes: bytes, above: above, in: directory, fault: fault)
        continue
      }
      let policy = classify(entry, bytes: bytes, above: above, in: directory)
      let index = add(entry, bytes: bytes, state: state, policy: policy, in: directory)
      guard entry.status.kind == .directory else { continue }
      if !options.leads(to: directory.relativePath.appending(batch.name(entry))) { continue }
      if entry.status.isMountPoint, !isCrossed(index) { continue }
      if options.excluded.contains(entry.status.identity) {
        scan.exclude(index)
      } else {
        descent.enter(
          number, with: State(directory: index, policy: policy, generation: generation))
      }
    }
  }

  /// Records the root of another mount; returns whether the scan enters it.
  private mutating func isCrossed(_ index: Int) -> Bool {
    if options.crossesMounts {
      scan.crossedMounts.append(scan.path(index))
    } else if scan.entries[index].selection != .excluded {
      scan.mounts.append(scan.path(index))
    }
    return options.crossesMounts
  }

  /// Reports an entry that no snapshot can hold, if it may contain an included entry.
  private mutating func addUnreadable(
    _ entry: WalkBatch.Entry, bytes: [UInt8], above: Classifier.State,
    in directory: borrowing WalkDirectory, fault: String
  ) {
    let policy = classifier.descend(above, bytes.span.extracting(entry.nameRange))
    guard classifier.canReachKeep(policy, for: destination, view: options.view) else {
      return
    }
    let path = directory.relativePath.appending(ByteString(bytes[entry.nameRange]))
    scan.unreadable.append(PathRemark(path: path, remark: fault))
  }

  mutating func failed(_ problem: WalkProblem, state: State) {
    failed(at: problem.path, problem.error, state: state)
  }

  /// Records an entry of a directory, or the directory itself, that could not be read.
  mutating func failed(at path: ByteString, _ error: SystemError, state: State) {
    let isKept = scan.entries[state.directory].selection != .excluded
    guard
      isKept
        || classifier.canReachKeep(
          policy(of: state), for: destination, view: options.view)
    else { return }
    if isSkippedMount(path, state) { return scan.mounts.append(path) }
    scan.unreadable.append(PathRemark(path: path, remark: error.reason))
    if scan.path(state.directory) == path {
      scan.entries[state.directory].isUnreadable = true
    }
  }

  /// Whether an entry that cannot be examined is a mount that the scan does not enter: one behind
  /// FUSE that only its own user may access, or whose program or server is gone.
  private mutating func isSkippedMount(_ path: ByteString, _ state: State) -> Bool {
    !options.crossesMounts && path != scan.path(state.directory)
      && mountPoints.contains(scan.container.absolutePath.appending(path))
  }

  mutating func vanished(_ name: ByteString, inode: UInt64, state: State) {
    guard name.withSpan({ isWanted($0, state: state) }) else { return }
    let above = policy(of: state)
    let policy = name.withSpan { classifier.descend(above, $0) }
    guard classifier.canReachKeep(policy, for: destination, view: options.view) else {
      return
    }
    let directory = scan.entries[state.directory].status.identity
    scan.vanished.append(
      VanishedEntry(
        path: scan.path(state.directory).appending(name),
        identity: FileIdentity(device: directory.device, inode: inode)))
  }

  mutating func lost(state: State) {
    let entry = scan.entries[state.directory]
    scan.entries[state.directory].isStale = true
    guard
      entry.selection != .excluded
        || classifier.canReachKeep(
          policy(of: state), for: destination, view: options.view)
    else { return }
    scan.vanished.append(
      VanishedEntry(path: scan.path(state.directory), identity: entry.status.identity))
  }

  /// Returns the policy's state for an entry, with the entry's marks.
  private mutating func classify(
    _ entry: WalkBatch.Entry, bytes: [UInt8], above: Classifier.State,
    in directory: borrowing WalkDirectory
  ) -> Classifier.State {
    let policy = classifier.descend(above, bytes.span.extracting(entry.nameRange))
    let isDirectory = entry.status.kind == .directory
    if marks.isIdle, !isDirectory { return policy }
    name.set(bytes.span.extracting(entry.nameRange))
    do throws(SystemError) {
      let found = try marks.marks(on: &name, entry.status, in: directory.directory, &markCache)
      record(found, at: scan.entries.count)
      let marked = classifier.marking(policy, found)
      return isDirectory ? addSiblings(marked, directory.directory) : marked
    } catch {
      if !error.isMissing {
        let path = directory.relativePath.appending(name.copy)
        scan.unreadable.append(
          PathRemark(path: path, remark: "cannot read its marks: \(error.reason)"))
      }
      return policy
    }
  }

  /// Returns the state of the directory that `name` names, or of the root, including the sibling
  /// names used in rules that the directory contains.
  private mutating func addSiblings(
    _ state: Classifier.State, _ directory: borrowing Directory
  ) -> Classifier.State {
    let asked = classifier.siblingNames(state)
    if asked.isEmpty { return state }
    var held: SiblingSet = []
    let length = name.count
    for (index, sibling) in classifier.policy.siblingNames.enumerated() {
      let bit = SiblingSet(sibling: index)
      guard asked.contains(bit) else { continue }
      // A name with a slash at its end is that of a directory, any other that of a file: a
      // directory with the name of a browser's file identifies no profile.
      let isDirectory = sibling.last == ByteString.slash
      name.descend(sibling.span.extracting(0..<(isDirectory ? sibling.count - 1 : sibling.count)))
      let kind = (try? directory.statusIfPresent(name))?.kind
      if let kind, (kind == .directory) == isDirectory { held.insert(bit) }
      name.shorten(to: length)
    }
    if !held.isEmpty { scan.siblings[length == 0 ? 0 : scan.entries.count] = held }
    return classifier.holding(state, held)
  }

  /// Records an entry's marks for explanations.
  private mutating func record(_ found: MarkSet, at index: Int) {
    if !found.isEmpty { scan.marks[index] = found }
  }
}

// MARK: - States of the classifier

/// A policy can have more states than fit in memory. The classifier then forgets them, and
/// determines the state of a directory again from the names in its path when the walk reaches it.
extension ContainerScanner {
  /// Returns the classifier's state of a directory in the walk.
  mutating func policy(of state: State) -> Classifier.State {
    if state.generation == generation { return state.policy }
    let found = classifier.state(scan.query(state.directory))
    return scan.siblings[state.directory].map { classifier.holding(found, $0) } ?? found
  }

  /// Makes the classifier forget its states except that of the current directory; returns its new
  /// state.
  mutating func forgetAll(but state: Classifier.State) -> Classifier.State {
    var kept = [state]
    classifier.compact(keeping: &kept)
    generation += 1
    return kept[0]
  }
}

// MARK: - Limits

extension ContainerScanner {
  /// The maximum depth of a container's directories and the maximum length of their paths, so that
  /// a snapshot can hold their entries (docs/repository-format.md, "What a reader refuses").
  private struct Limits {
    private let depth: Int
    private let bytes: Int

    init(_ container: Container) {
      let prefix = container.logicalPrefix
      // The snapshot's root is one of the directories.
      depth = FormatLimit.depth - 1 - prefix.components.count
      // Leaves room for a slash and the longest name.
      bytes = FormatLimit.path - prefix.count - 2 - Int(UInt8.max)
    }

    /// Returns the reason why no snapshot can hold an entry, or a directory with all its entries;
    /// nil if one can.
    func fault(of entry: WalkBatch.Entry, in directory: borrowing WalkDirectory) -> String? {
      // Linux defines NAME_MAX as 255, but not all of its file systems observe it.
      if entry.nameRange.count > Int(UInt8.max) {
        return "no snapshot can hold it: its name has \(entry.nameRange.count) bytes, more than 255"
      }
      guard entry.status.kind == .directory else { return nil }
      if directory.depth >= depth {
        return "no snapshot can hold it: it is nested in more than \(depth) directories"
      }
      let count = directory.relativePath.count + 1 + entry.nameRange.count
      return count > bytes ? "no snapshot can hold it: its path has more than \(bytes) bytes" : nil
    }
  }
}
