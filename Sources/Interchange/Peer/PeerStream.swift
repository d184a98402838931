internal import Codecs
internal import SystemIO

/// The archive of a snapshot that another program writes to its standard output, read as it
/// arrives.
final class PeerStream {
  private let peer: Peer
  private let program: RunningProgram
  private let isStopping: () -> Bool
  private(set) var failure: SystemError?
  private(set) var isStopped = false

  private static let action = "read the snapshot"

  /// Starts the program.
  init(
    _ snapshot: PeerSnapshot, of peer: Peer, isStopping: @escaping () -> Bool
  ) throws(InterchangeError) {
    self.peer = peer
    self.isStopping = isStopping
    program = try peer.start(peer.archiveWords(of: snapshot), Self.action)
  }
}

extension PeerStream: NamedArchiveInput {
  var name: ByteString { peer.shownLocation }
  var size: UInt64? { nil }
  var modified: Timestamp? { nil }

  func read(into buffer: inout [UInt8]) -> Int {
    do throws(SystemError) {
      guard let count = try program.read(into: &buffer, isStopping: isStopping) else {
        isStopped = true
        return -1
      }
      return count
    } catch {
      failure = error
      return -1
    }
  }

  func seek(to offset: UInt64) {}
}

extension PeerStream {
  /// Discards the data after the archive, and checks that the program ends with status 0.
  func requireSuccess() throws(InterchangeError) {
    let code = try end()
    if code != 0 { throw peer.failure(Self.action, of: program, code: code) }
  }

  /// Returns the error of a snapshot whose archive cannot be read completely: the program's own
  /// error if it failed. Entries that were read before are never kept.
  func failure(after error: InterchangeError) -> InterchangeError {
    switch error.kind {
    case .interrupted, .programFailed, .wrongKey, .keyRequired, .system: return error
    default: break
    }
    do throws(InterchangeError) { try requireSuccess() } catch { return error }
    return InterchangeError(
      .programFailed, Self.action, subject: name,
      reason: "the archive of \(peer.kind.rawValue) is damaged: \(error.reason)")
  }

  /// Waits until the program has ended, and returns its exit status.
  private func end() throws(InterchangeError) -> Int {
    do throws(SystemError) {
      if let code = try program.waitForEnd(isStopping: isStopping) { return code }
    } catch { throw InterchangeError(error, Self.action, subject: name) }
    throw peer.interruption(Self.action)
  }
}
