"""The chapters, and what draws their figures. A package so that chapters can import it."""
