internal import Codecs
internal import SystemIO

extension Peer {
  /// The maximum size of a list of snapshots in bytes: more than 100,000 snapshots.
  private static let listLimit = 64 << 20

  /// Lists the snapshots of the repository by running the program.
  ///
  /// - Throws: `programFailed`, `wrongKey`, `keyRequired` or `system` if the program fails or its
  ///   list cannot be read; `interrupted`.
  package func snapshots(
    isStopping: () -> Bool
  ) throws(InterchangeError) -> PeerSnapshot.List {
    let action = "list the snapshots of"
    let program = try start(listWords, action)
    let (text, code) = try output(of: program, action, isStopping)
    if code != 0 { throw failure(action, of: program, code: code) }
    do throws(CodecError) {
      return try PeerSnapshot.list(kind, text)
    } catch {
      throw InterchangeError(
        .programFailed, action, subject: shownLocation,
        reason: "the list of \(kind.rawValue) cannot be read: \(error.reason)",
        hint: "check that its version is supported (docs/formats.md)")
    }
  }

  /// Starts a command of the program.
  func start(
    _ words: [ByteString], _ action: String
  ) throws(InterchangeError) -> RunningProgram {
    do throws(SystemError) {
      return try RunningProgram(words, environment: environment)
    } catch {
      let hint =
        error.isMissing
        ? "install \(kind.rawValue), or name its program with '--program PATH'" : error.hint
      throw InterchangeError(
        .system, action, subject: shownLocation,
        reason: "cannot run the program '\(program)': \(error.reason)", hint: hint, cause: error)
    }
  }

  /// Returns all of a program's output and its exit status.
  private func output(
    of program: RunningProgram, _ action: String, _ isStopping: () -> Bool
  ) throws(InterchangeError) -> (text: [UInt8], code: Int) {
    var (text, portion): ([UInt8], [UInt8]) = ([], [UInt8](repeating: 0, count: 64 << 10))
    do throws(SystemError) {
      while let count = try program.read(into: &portion, isStopping: isStopping), count > 0 {
        text += portion[..<count]
        if text.count > Self.listLimit { break }
      }
      if text.count <= Self.listLimit, !isStopping(),
        let code = try program.waitForEnd(isStopping: isStopping)
      {
        return (text, code)
      }
    } catch { throw InterchangeError(error, action, subject: shownLocation) }
    if text.count > Self.listLimit {
      throw InterchangeError(
        .limitExceeded, action, subject: shownLocation,
        reason: "the list of \(kind.rawValue) has more than \(Self.listLimit) bytes")
    }
    throw interruption(action)
  }

  /// The error for a program that was ended because the operation was asked to stop.
  func interruption(_ action: String) -> InterchangeError {
    InterchangeError(
      .interrupted, action, subject: shownLocation, reason: "it was interrupted",
      hint: "run it again: snapshots that were imported are not imported again")
  }
}
