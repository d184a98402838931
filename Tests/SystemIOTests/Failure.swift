import SystemIO
import Testing

/// Returns the error that a closure throws, or nil if it throws none.
func failure(_ body: () throws -> Void) -> SystemError? {
  do {
    try body()
    return nil
  } catch let error as SystemError {
    return error
  } catch {
    Issue.record("no SystemError: \(error)")
    return nil
  }
}
