// Interchange: archives and backups of other programs, in and out.
//
// A format has a reader, an `EntrySource`, or a writer, an `EntrySink`. Both know entries and
// bytes and nothing about repositories. `ImportOperation` stores any source as a snapshot,
// `ExportOperation` writes a snapshot, or a path in one, to any sink.
//
// Input is untrusted. A reader never follows a name or a link out of its source, limits the data
// that it keeps in memory, and continues after damage where the format permits it: an entry that
// cannot be represented is listed with its reason.
//
// Not guaranteed: that a format can represent each property of an entry. Properties that a sink
// cannot write are listed, too.
