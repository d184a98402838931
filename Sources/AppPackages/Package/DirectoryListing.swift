internal import SandboxModel
internal import SystemIO

/// Lists a bundle's directory: every entry with its status, and the targets of links.
struct DirectoryListing: WalkVisitor {
  let bundle: ByteString
  let limits: PackageLimits
  let fault: PackageFault
  private(set) var entries: [(entry: PackageEntry, status: FileStatus)] = []
  private(set) var failure: ModelError?

  init(bundle: ByteString, limits: PackageLimits, fault: PackageFault) {
    self.bundle = bundle
    self.limits = limits
    self.fault = fault
  }

  var isDone: Bool { failure != nil }

  mutating func visit(
    _ batch: borrowing WalkBatch, of directory: borrowing WalkDirectory, state: Void,
    descent: inout WalkDescent<Void>
  ) {
    do throws(ModelError) {
      for index in batch.entries.indices {
        let entry = batch.entries[index]
        let name = batch.name(entry)
        let path = bundle.appending(directory.relativePath).appending(name)
        try add(path, status: entry.status, name: name, in: directory.directory)
        if entry.status.kind == .directory { descent.enter(index, with: ()) }
      }
    } catch {
      failure = error
    }
  }

  mutating func failed(_ problem: WalkProblem, state: Void) {
    failure = failure ?? ModelError(package: problem.error)
  }

  private mutating func add(
    _ path: ByteString, status: FileStatus, name: ByteString, in directory: borrowing Directory
  ) throws(ModelError) {
    guard entries.count < limits.entries else {
      throw fault.limitExceeded("it has more than \(limits.entries) entries")
    }
    if let reason = PackageName.fault(of: path, depth: limits.depth, foreign: false) {
      throw fault.unsafe("its '\(path)' cannot be copied: \(reason)")
    }
    if status.isMountPoint {
      throw fault.unsafe(
        "its '\(path)' is on another file system", hint: "unmount it or specify a copy")
    }
    let kind: PackageEntry.Kind
    switch status.kind {
    case .directory: kind = .folder
    case .file: kind = .file(size: status.size)
    case .symlink:
      do {
        kind = .link(target: try directory.target(of: name))
      } catch {
        throw ModelError(package: error)
      }
    default: throw fault.unsafe("its '\(path)' is not a file, directory or link")
    }
    entries.append(
      (
        PackageEntry(
          path: path, kind: kind, permissions: status.permissions & 0o777,
          modified: status.modified), status
      ))
  }
}
