import Testing

@testable import RemoteStorage

/// The rate at which a request transfers bytes.
struct TransferPaceTests {
  @Test func aRequestIsStalledIfFewBytesMoveInAWindow() {
    var pace = TransferPace(window: 300, minimum: 16, from: 1000)
    var found = [pace.isStalled(at: 1299, total: 0), pace.isStalled(at: 1300, total: 4800)]
    #expect(found == [false, false], "the next window begins")
    found = [pace.isStalled(at: 1599, total: 4800), pace.isStalled(at: 1600, total: 9599)]
    #expect(found == [false, true])
    pace.didPause(100)
    found = [pace.isStalled(at: 1600, total: 4900), pace.isStalled(at: 1700, total: 4900)]
    #expect(found == [false, true], "this host limits the rate")
  }

  @Test func anAnswerToAChangeGetsMoreTime() {
    var pace = TransferPace(window: 300, minimum: 16, from: 1000)
    let found = [
      pace.isStalled(at: 2199, total: 9, factor: 4), pace.isStalled(at: 2200, total: 9, factor: 4),
    ]
    #expect(found == [false, true])
  }

  /// libcurl starts counting again on another connection.
  @Test func anotherConnectionBeginsAtZero() {
    var pace = TransferPace(window: 300, minimum: 16, from: 1000)
    let found = [
      pace.isStalled(at: 1300, total: 90_000), pace.isStalled(at: 1400, total: 10),
      pace.isStalled(at: 1600, total: 4810), pace.isStalled(at: 1900, total: 9609),
    ]
    #expect(found == [false, false, false, true])
  }
}
