internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// A scan in parts: each ends when it has its share of entries, and leaves the directories that it
/// did not reach to others.
extension ContainerScanner {
  /// Runs a job.
  mutating func run(_ job: ScanJob, of container: Container) -> ScanPart {
    if job.starts.isEmpty {
      let rest = begin(container)
      var part = ScanPart(job: job, scan: scan)
      part.segments = [
        ScanPart.Segment(
          home: nil, copy: 0, entries: 0..<scan.entries.count, names: 0..<scan.names.count)
      ]
      return close(&part, rest, leaving: [])
    }
    prepare(container, notesAccess: job.notesAccess)
    var part = ScanPart(job: job, scan: scan)
    do throws(SystemError) {
      let root = try Directory.open(resolved: container.absolutePath)
      remind(container, root)
      return walk(root, &part)
    } catch {
      scan.unreadable.append(PathRemark(path: "", remark: error.reason))
      return close(&part, [], leaving: [])
    }
  }

  private mutating func walk(_ root: consuming Directory, _ part: inout ScanPart) -> ScanPart {
    var walk = Walk(root)
    var above: DirectoryChain?
    for (number, start) in part.job.starts.enumerated() {
      let copy = copyChain(of: start, isNew: above !== start.above)
      above = start.above
      let (first, name) = (scan.entries.count, scan.names.count)
      let rest = walk.run(&self, from: WalkStart(path: start.path, state: state(of: copy)))
      part.segments.append(
        ScanPart.Segment(
          home: start.home, copy: copy, entries: first..<scan.entries.count,
          names: name..<scan.names.count))
      if isDone || isYielding {
        return close(&part, rest, leaving: Array(part.job.starts[(number + 1)...]))
      }
    }
    return close(&part, [], leaving: [])
  }

  /// Returns the state of a directory for which the classifier must determine its own state.
  private mutating func state(of directory: Int) -> State {
    let root = classifier.root(
      scan.container.kind, app: scan.container.policyApp, group: scan.container.policyGroup)
    return State(directory: directory, policy: root, generation: -1)
  }

  private mutating func close(
    _ part: inout ScanPart, _ rest: [WalkStart<State>], leaving others: [ScanStart]
  ) -> ScanPart {
    part.rest = starts(rest, of: part) + others
    part.scan = scan
    part.isInterrupted = isDone
    scan = ContainerScan(scan.container)
    return part
  }

  /// Returns the starts of another job, for the directories that the last segment left.
  private func starts(_ rest: [WalkStart<State>], of part: ScanPart) -> [ScanStart] {
    var chains: [Int: DirectoryChain] = [:]
    return rest.map { left in
      let directory = left.state.directory
      let parent = Int(scan.entries[directory].parent)
      let above = chains[parent] ?? chain(downTo: parent)
      chains[parent] = above
      return ScanStart(
        path: left.path,
        home: ScanStart.Home(
          job: part.job.number, segment: part.segments.count - 1, index: directory),
        above: above, own: link(directory))
    }
  }

  private func chain(downTo directory: Int) -> DirectoryChain {
    var way = [directory]
    while let last = way.last, last > 0 { way.append(Int(scan.entries[last].parent)) }
    return DirectoryChain(way.reversed().map { link($0) })
  }

  private func link(_ index: Int) -> ChainLink {
    ChainLink(
      entry: scan.entries[index], name: scan.name(index), marks: scan.marks[index],
      siblings: scan.siblings[index])
  }

  /// Appends copies of a start's directory and of its ancestors, unless these are the same as for
  /// the last start; returns the index of the directory's copy. The root's copy is always the
  /// first.
  private mutating func copyChain(of start: ScanStart, isNew: Bool) -> Int {
    if isNew {
      var parent = 0
      for (depth, link) in start.above.links.enumerated() where depth > 0 || scan.entries.isEmpty {
        parent = copy(link, in: parent)
      }
      chainEnd = parent
    }
    return copy(start.own, in: chainEnd)
  }

  private mutating func copy(_ link: ChainLink, in parent: Int) -> Int {
    var entry = link.entry
    entry.parent = Int32(parent)
    entry.nameStart = UInt32(scan.names.count)
    (entry.firstChild, entry.childCount) = (0, 0)
    let index = scan.append(entry, accessed: 0)
    scan.names.append(contentsOf: link.name.bytes)
    if let marks = link.marks { scan.marks[index] = marks }
    if let siblings = link.siblings { scan.siblings[index] = siblings }
    return index
  }
}
