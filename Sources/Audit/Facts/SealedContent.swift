internal import Codecs
internal import DeviceScan
internal import SandboxModel
internal import SystemIO

/// The comparison of a bundle's files with the hashes in its signature.
///
/// `codesign` writes the list after all files that it names, so only a file whose modification time
/// is later than that of the list, or whose change time is later by more than an installation or a
/// copy of the bundle takes, can differ. If no file has changed, none is read.
struct SealedContent {
  /// The seconds within which an installation or a copy sets the change times of a bundle.
  static let installation: Int64 = 600
  /// The maximum number of bytes that are read from one bundle.
  static let limit: UInt64 = 256 << 20

  let scan: ContainerScan
  let seal: BundleSeal
  /// The files whose content differs, by path.
  private(set) var altered: [(path: ByteString, index: Int)] = []
  /// The reason why a file was not compared, with its path in the container.
  private(set) var remarks: [(path: ByteString, reason: String)] = []

  /// Compares the files of a bundle that may have changed.
  ///
  /// - Parameters:
  ///   - top: The directory to which the paths in the list are relative.
  ///   - list: The file with the list.
  init(_ seal: BundleSeal, in scan: ContainerScan, at top: Int, list: Int) {
    (self.scan, self.seal) = (scan, seal)
    let candidates = candidates(at: top, since: scan.entries[list].status)
    if candidates.isEmpty { return }
    do throws(SystemError) {
      var reader = try ContainerReader(scan.container)
      compare(candidates, &reader)
    } catch { remarks.append((scan.path(top), "it cannot be read: \(error.reason)")) }
  }

  /// A file that may differ from its hash.
  private struct Candidate {
    let path: ByteString
    let index: Int
    let hash: BundleSeal.Hash
  }

  private func candidates(at top: Int, since list: FileStatus) -> [Candidate] {
    if seal.hashes.isEmpty { return [] }
    var found: [Candidate] = []
    var pending: [(index: Int, path: ByteString)] = [(top, "")]
    while let (directory, path) = pending.popLast() {
      for child in scan.entries[directory].children {
        let status = scan.entries[child].status
        if status.kind == .directory {
          pending.append((child, path.appending(scan.name(child))))
        } else if status.kind == .file, Self.mayDiffer(status, since: list) {
          let inner = path.appending(scan.name(child))
          guard let hash = seal.hashes[inner] else { continue }
          found.append(Candidate(path: inner, index: child, hash: hash))
        }
      }
    }
    return found.sorted { $0.path < $1.path }
  }

  private static func mayDiffer(_ status: FileStatus, since list: FileStatus) -> Bool {
    status.modified > list.modified || status.changed.since(list.changed) > Double(installation)
  }

  private mutating func compare(_ candidates: [Candidate], _ reader: inout ContainerReader) {
    var left = Self.limit
    for (number, candidate) in candidates.enumerated() {
      let size = scan.entries[candidate.index].status.size
      guard size <= left else {
        let count = candidates.count - number
        remarks.append(
          (
            scan.path(candidate.index),
            "\(count) changed files of the bundle, of which this is the first, are not compared with "
              + "the signature: they exceed the limit of \(Self.limit >> 20) MiB"
          ))
        return
      }
      left -= size
      do throws(SystemError) {
        let digest = try Self.digest(
          of: scan.path(candidate.index), size: size, candidate.hash.function, &reader)
        if digest != candidate.hash.digest { altered.append((candidate.path, candidate.index)) }
      } catch {
        remarks.append((scan.path(candidate.index), "it cannot be read: \(error.reason)"))
      }
    }
  }

  /// Returns the digest of a file, limited to the size that the scan found, or nil if it is no
  /// longer a file.
  private static func digest(
    of path: ByteString, size: UInt64, _ function: MessageDigest.Function,
    _ reader: inout ContainerReader
  ) throws(SystemError) -> [UInt8]? {
    guard let file = try reader.file(path) else { return nil }
    var digest = MessageDigest(function)
    var (buffer, at): ([UInt8], UInt64) = ([], 0)
    while at < size {
      try file.read(count: Int(min(1 << 18, size - at)), at: at, into: &buffer)
      if buffer.isEmpty { break }
      digest.update(buffer.span)
      at += UInt64(buffer.count)
    }
    return digest.finish()
  }
}
